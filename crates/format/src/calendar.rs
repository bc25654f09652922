//! Days as dates of the Gregorian calendar, which goes on before its invention. The year before 1
//! is 0.
//!
//! Years begin in March here, so the leap day is the last.

/// The calendar repeats after 400 years, an era.
const ERA_DAYS: i64 = 146_097;
/// The days from 0000-03-01, the beginning of an era, to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;
/// The eras from before the least year of 32 bits to year 0.
const ERAS: i64 = 1 << 23;
const MONTH_DAYS: [u8; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
/// The days from March 1 to each month's first.
const DAYS_BEFORE_MONTH: [u16; 12] = [306, 337, 0, 31, 61, 92, 122, 153, 184, 214, 245, 275];

/// The year, month and day of a day counted from 1970-01-01.
///
/// The algorithm is Howard Hinnant's `civil_from_days` (chrono-Compatible Low-Level Date
/// Algorithms, 2013).
pub fn date(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH_DAYS;
    let (era, day_of_era) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Five months from March or August have 153 days.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// The day, counted from 1970-01-01, of a date. None if there is no such date.
#[inline]
pub fn days(year: i32, month: u8, day: u8) -> Option<i32> {
    let i = usize::from(month.wrapping_sub(1));
    let is_leap = month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if day == 0 || day > MONTH_DAYS.get(i)? + u8::from(is_leap) {
        return None;
    }
    let year = i64::from(year) - i64::from(month <= 2);
    // Whole eras make the year positive, for shorter divisions.
    let year = (year + 400 * ERAS).cast_unsigned();
    let centuries = year / 100;
    let leap_days = year / 4 - centuries + centuries / 4;
    let days = 365 * year + leap_days + u64::from(DAYS_BEFORE_MONTH[i]) + u64::from(day) - 1;
    i32::try_from(days.cast_signed() - ERAS * ERA_DAYS - EPOCH_DAYS).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_is_its_date_and_no_other_date_is_one() {
        let (first, last) = (days(-401, 1, 1).unwrap(), days(9999, 12, 31).unwrap());
        assert_eq!((days(1970, 1, 1), last), (Some(0), 2_932_896));
        let mut next = first;
        for year in -401..=9999 {
            for month in 0..=13 {
                for day in 0..=32 {
                    let Some(found) = days(year, month, day) else { continue };
                    assert_eq!(found, next);
                    assert_eq!(date(found.into()), (year.into(), month.into(), day.into()));
                    next += 1;
                }
            }
        }
        assert_eq!(next, last + 1);
        assert_eq!((days(i32::MAX, 12, 31), days(i32::MIN, 1, 1)), (None, None));
    }
}
