//! Days as dates of the Gregorian calendar.

/// The calendar repeats after 400 years, an era.
const ERA_DAYS: i64 = 146_097;
/// The days from 0000-03-01, the beginning of an era, to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;

/// The year, month and day of a day counted from 1970-01-01. The year before 1 is 0.
///
/// The algorithm is Howard Hinnant's `civil_from_days` (chrono-Compatible Low-Level Date
/// Algorithms, 2013). Its years begin in March, so the leap day is the last.
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
