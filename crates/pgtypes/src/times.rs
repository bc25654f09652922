//! Dates and times as PostgreSQL reads them, also before our era and after the year 9999 (its
//! manual, section "Date/Time Types").

use dray_format::calendar;

const DAY_SECONDS: i64 = 86_400;

/// A day, counted from 1970-01-01.
pub fn date(days: i64) -> String {
    let (date, era) = with_era(days);
    format!("{date}{era}")
}

/// A timestamp, counted from 1970-01-01 in whole seconds and the microseconds after them. `zone`
/// follows the time.
pub fn timestamp(seconds: i64, microseconds: i64, zone: &str) -> String {
    let (date, era) = with_era(seconds.div_euclid(DAY_SECONDS));
    let second = seconds.rem_euclid(DAY_SECONDS);
    let fraction = match microseconds {
        0 => String::new(),
        some => format!(".{some:06}"),
    };
    format!(
        "{date} {:02}:{:02}:{:02}{fraction}{zone}{era}",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// The date, and the era that follows the whole timestamp. There is no year 0.
fn with_era(days: i64) -> (String, &'static str) {
    match calendar::date(days) {
        (year @ 1.., month, day) => (format!("{year:04}-{month:02}-{day:02}"), ""),
        (year, month, day) => (format!("{:04}-{month:02}-{day:02}", 1 - year), " BC"),
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
            // PostgreSQL's first and last day.
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
        // The server refuses years that only Arrow has.
        assert_eq!(timestamp(i64::MIN, 0, ""), "292277022658-01-27 08:29:52 BC");
        assert_eq!(timestamp(i64::MAX, 0, ""), "292277026596-12-04 15:30:07");
    }
}
