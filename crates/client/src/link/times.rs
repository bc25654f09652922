//! Dates and times as PostgreSQL reads them, in all its years: from 4713 BC on, and with more than four digits (its manual,
//! section "Date/Time Types").

const DAY_SECONDS: i64 = 86_400;
/// The Gregorian calendar repeats itself after 400 years.
const ERA_DAYS: i64 = 146_097;
/// From 0000-03-01, where an era begins, to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;

/// A day, counted from 1970-01-01.
pub(super) fn date(days: i64) -> String {
    let (date, era) = calendar(days);
    format!("{date}{era}")
}

/// A time, counted from 1970-01-01: whole seconds, and microseconds behind them. The zone follows it.
pub(super) fn timestamp(seconds: i64, microseconds: i64, zone: &str) -> String {
    let (date, era) = calendar(seconds.div_euclid(DAY_SECONDS));
    let second = seconds.rem_euclid(DAY_SECONDS);
    let fraction = match microseconds {
        0 => String::new(),
        some => format!(".{some:06}"),
    };
    format!("{date} {:02}:{:02}:{:02}{fraction}{zone}{era}", second / 3600, second / 60 % 60, second % 60)
}

/// Year, month and day, and what follows all of it where the year is before our era, which has no year 0.
///
/// By Howard Hinnant's `civil_from_days` (chrono-Compatible Low-Level Date Algorithms, 2013): years begin in March, so that the
/// leap day is the last.
fn calendar(days: i64) -> (String, &'static str) {
    let days = days + EPOCH_DAYS;
    let (era, day_of_era) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    match year {
        1.. => (format!("{year:04}-{month:02}-{day:02}"), ""),
        _ => (format!("{:04}-{month:02}-{day:02}", 1 - year), " BC"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_all_years() {
        for (days, text) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (11_016, "2000-02-29"),
            (-25_508, "1900-03-01"),
            (-719_162, "0001-01-01"),
            (-719_163, "0001-12-31 BC"),
            (-735_160, "0044-03-15 BC"),
            // The first and the last day that PostgreSQL has.
            (-2_440_588, "4714-11-24 BC"),
            (2_145_042_905, "5874897-12-31"),
            (2_932_896, "9999-12-31"),
            (2_932_897, "10000-01-01"),
        ] {
            assert_eq!(date(days), text);
        }
    }

    #[test]
    fn times_of_all_years() {
        assert_eq!(timestamp(-1, 999_999, ""), "1969-12-31 23:59:59.999999");
        assert_eq!(timestamp(1_709_208_000, 0, "+00:00"), "2024-02-29 12:00:00+00:00");
        assert_eq!(timestamp(-210_866_803_200, 1, "+00:00"), "4714-11-24 00:00:00.000001+00:00 BC");
        assert_eq!(timestamp(9_224_318_015_999, 0, ""), "294276-12-31 23:59:59");
        // Years that only Arrow has are the server's to refuse.
        assert_eq!(timestamp(i64::MIN, 0, ""), "292277022658-01-27 08:29:52 BC");
        assert_eq!(timestamp(i64::MAX, 0, ""), "292277026596-12-04 15:30:07");
    }
}
