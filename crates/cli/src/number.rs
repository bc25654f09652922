//! Formats numbers for people.

use std::time::Duration;

/// `6,001,215`
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 row`, `2 rows`
pub(crate) fn rows(number: u64) -> String {
    format!("{} {}", count(number), if number == 1 { "row" } else { "rows" })
}

/// `842.3 MB`: powers of 1000.
pub(crate) fn bytes(number: u64) -> String {
    scaled(number as f64, &["B", "kB", "MB", "GB", "TB", "PB"])
}

/// Units per second.
pub(crate) fn rate(number: u64, elapsed: Duration) -> u64 {
    let rate = number as f64 / elapsed.as_secs_f64().max(1e-9);
    // `as` saturates.
    rate as u64
}

/// `4.9 M`
pub(crate) fn short(number: u64) -> String {
    scaled(number as f64, &["", "k", "M", "G", "T", "P"]).trim_end().to_owned()
}

/// `12 µs`, `3.4 ms`, `1.23 s`, `4 min 5 s`
pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    match seconds {
        0.0 => "0".to_owned(),
        _ if seconds < 1e-3 => format!("{:.0} µs", seconds * 1e6),
        _ if seconds < 1.0 => format!("{:.1} ms", seconds * 1e3),
        _ if seconds < 120.0 => format!("{seconds:.2} s"),
        _ => format!("{} min {} s", duration.as_secs() / 60, duration.as_secs() % 60),
    }
}

/// `part` of `whole`, in percent.
pub(crate) fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { 100.0 * part / whole } else { 0.0 }
}

fn scaled(mut number: f64, units: &[&str]) -> String {
    let mut units = units.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    if number < 1000.0 {
        return format!("{number} {unit}");
    }
    // A number that would round to 1000 takes the next unit.
    while number >= 999.95 {
        let Some(next) = units.next() else { break };
        number /= 1000.0;
        unit = next;
    }
    format!("{number:.1} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(count(0), "0");
        assert_eq!(count(6_001_215), "6,001,215");
        assert_eq!(rows(1), "1 row");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(999_999), "1.0 MB");
        assert_eq!(bytes(842_300_000), "842.3 MB");
        assert_eq!(short(4_860_000), "4.9 M");
        assert_eq!(short(12), "12");
        assert_eq!(rate(10, Duration::from_secs(2)), 5);
        assert_eq!(duration(Duration::from_micros(12)), "12 µs");
        assert_eq!(duration(Duration::from_millis(1230)), "1.23 s");
        assert_eq!(duration(Duration::from_secs(245)), "4 min 5 s");
    }
}
