//! Dates and times as PostgreSQL reads them, in all its years: from 4713 BC on, and with more than
//! four digits (its manual, section "Date/Time Types").

use crate::calendar;

const DAY_SECONDS: i64 = 86_400;

/// A day, counted from 1970-01-01.
pub(super) fn date(days: i64) -> String {
    let (date, era) = in_eras(days);
    format!("{date}{era}")
}

/// A time, counted from 1970-01-01: whole seconds, and microseconds behind them. The zone follows
/// it.
pub(super) fn timestamp(seconds: i64, microseconds: i64, zone: &str) -> String {
    let (date, era) = in_eras(seconds.div_euclid(DAY_SECONDS));
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

/// Year, month and day, and what follows all of it where the year is before our era, which has no
/// year 0.
fn in_eras(days: i64) -> (String, &'static str) {
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
