//! The progress line of a statement, on standard error if that is a terminal.

use std::time::{Duration, Instant};

use dray_client::{Known, Progress, Verdict, Watch};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::interrupt::Interrupt;
use crate::number;

/// How often the line is redrawn.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

/// Whether the progress line is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visibility {
    /// If standard error is a terminal.
    Shown,
    Hidden,
}

impl Visibility {
    pub(crate) fn unless(hidden: bool) -> Self {
        if hidden { Self::Hidden } else { Self::Shown }
    }
}

/// The progress line. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Meter(ProgressBar);

impl Meter {
    pub(crate) fn new(visibility: Visibility) -> Self {
        let target = match visibility {
            Visibility::Shown => ProgressDrawTarget::stderr(),
            Visibility::Hidden => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(style("{spinner} {wide_msg}"));
        bar.set_message("connecting");
        bar.tick();
        Self(bar)
    }

    /// A callback that shows a statement's progress, and cancels it after an interrupt.
    pub(crate) fn watch(&self, interrupt: Interrupt) -> Watch {
        self.watch_named("", interrupt)
    }

    /// The same for one statement of several, whose name comes first in the line.
    pub(crate) fn watch_named(&self, name: &str, interrupt: Interrupt) -> Watch {
        let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
        interrupt.set_polled();
        let bar = self.0.clone();
        let started = Instant::now();
        let mut drawn = started;
        Box::new(move |progress| {
            if !bar.is_hidden() && drawn.elapsed() >= REDRAW_INTERVAL {
                drawn = Instant::now();
                draw(&bar, &name, progress, started.elapsed());
            }
            if interrupt.is_raised() { Verdict::Cancel } else { Verdict::Continue }
        })
    }

    /// Shows a message.
    pub(crate) fn show(&self, message: impl FnOnce() -> String) {
        if !self.0.is_hidden() {
            set_total(&self.0, None);
            self.0.set_message(message());
            self.0.tick();
        }
    }

    /// Hides the line while `print` runs.
    pub(crate) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.0.suspend(print)
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        self.0.finish_and_clear();
    }
}

fn draw(bar: &ProgressBar, name: &str, progress: &Progress, elapsed: Duration) {
    // Ignore an estimate that has been exceeded.
    let total = progress.estimate.rows.value().filter(|total| *total >= progress.rows);
    set_total(bar, total);
    bar.set_position(progress.rows);
    bar.set_message(format!("{name}{}", message(progress, total, elapsed)));
}

/// Shows a bar of this length, or none. Statements and messages share the line.
fn set_total(bar: &ProgressBar, total: Option<u64>) {
    if bar.length() == total {
        return;
    }
    match total {
        Some(total) => {
            bar.set_length(total);
            bar.set_style(style("{bar:16} {wide_msg}"));
        }
        None => {
            bar.unset_length();
            bar.set_style(style("{spinner} {wide_msg}"));
        }
    }
}

fn message(progress: &Progress, total: Option<u64>, elapsed: Duration) -> String {
    if progress.rows == 0 {
        return match progress.rows_read {
            0 => "waiting for the server".to_owned(),
            read => format!("{} read by the server", number::rows(read)),
        };
    }
    let mut text = number::count(progress.rows);
    if let Some(total) = total {
        let about = if matches!(progress.estimate.rows, Known::Exact(_)) { "" } else { "about " };
        text += &format!(" of {about}{}", number::count(total));
    }
    let rate = number::rate(progress.rows, elapsed);
    text += &format!(" rows, {} rows/s", number::short(rate));
    // Rows that are sorted are not received.
    if progress.bytes > 0 {
        text += &format!(", {}/s", number::bytes(number::rate(progress.bytes, elapsed)));
    }
    if let Some(left) =
        total.map(|total| total - progress.rows).filter(|left| *left > 0 && rate > 0)
    {
        text += &format!(", {} left", time_left(left / rate + 1));
    }
    text
}

/// The time left, without fractions, which would flicker.
fn time_left(seconds: u64) -> String {
    match seconds {
        ..120 => format!("{seconds} s"),
        _ => number::duration(Duration::from_secs(seconds)),
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("━╸─")
}

#[cfg(test)]
mod tests {
    use super::*;
    use dray_client::Estimate;

    #[test]
    fn the_bar_is_that_of_the_last_statement() {
        let meter = Meter::new(Visibility::Hidden);
        let draw_of = |rows| {
            let estimate = Estimate { rows, ..Estimate::default() };
            let progress = Progress { rows: 5, estimate, ..Progress::default() };
            draw(&meter.0, "", &progress, Duration::from_secs(1));
            meter.0.length()
        };
        assert_eq!(draw_of(Known::Exact(100)), Some(100));
        assert_eq!(draw_of(Known::Estimate(20)), Some(20));
        assert_eq!(draw_of(Known::Estimate(4)), None);
        assert_eq!(draw_of(Known::Exact(20)), Some(20));
    }

    #[test]
    fn the_line_shows_rows_and_rates() {
        let mut progress = Progress::default();
        let second = Duration::from_secs(1);
        assert_eq!(message(&progress, None, second), "waiting for the server");
        progress.rows_read = 5_000;
        assert_eq!(message(&progress, None, second), "5,000 rows read by the server");
        progress = Progress { rows: 1_000, bytes: 2_500_000, ..progress };
        assert_eq!(message(&progress, None, second), "1,000 rows, 1.0 k rows/s, 2.5 MB/s");
        assert_eq!(
            message(&Progress { bytes: 0, ..progress }, None, second),
            "1,000 rows, 1.0 k rows/s"
        );
        progress.estimate = Estimate { rows: Known::Estimate(11_000), ..Estimate::default() };
        let shown = message(&progress, Some(11_000), second);
        assert_eq!(shown, "1,000 of about 11,000 rows, 1.0 k rows/s, 2.5 MB/s, 11 s left");
    }
}
