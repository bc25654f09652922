//! Parses the settings of a direction: `rate=0:100000000,5000000000:20000000 delay=12500000
//! loss=0.01`.
//!
//! Integers are bits per second, nanoseconds and bytes. The caller converts other units.

use std::str::FromStr;

use crate::error::Error;
use crate::schedule::{Interval, RateStep, Schedule};
use crate::shaper::Settings;

impl FromStr for Settings {
    type Err = Error;

    fn from_str(words: &str) -> Result<Self, Error> {
        let mut settings = Self {
            schedule: Schedule { rates: Vec::new(), stalls: Vec::new(), cuts: Vec::new() },
            delay: 0,
            loss: 0.0,
            reorder: 0.0,
            reorder_delay: 0,
            queue_bytes: 0,
            seed: 0,
        };
        for word in words.split_whitespace() {
            let setting = Setting::from_word(word)?;
            match setting.name {
                "rate" => settings.schedule.rates = setting.rates()?,
                "stall" => settings.schedule.stalls = setting.intervals()?,
                "cut" => settings.schedule.cuts = setting.intervals()?,
                "delay" => settings.delay = setting.number()?,
                "loss" => settings.loss = setting.probability()?,
                "reorder" => settings.reorder = setting.probability()?,
                "reorder_delay" => settings.reorder_delay = setting.number()?,
                "queue" => settings.queue_bytes = setting.number()?,
                "seed" => settings.seed = setting.number()?,
                _ => return Err(setting.wrong("the name of a setting")),
            }
        }
        if settings.schedule.rates.is_empty() || settings.queue_bytes == 0 {
            return Err(Error::Missing { words: words.to_owned() });
        }
        Ok(settings)
    }
}

/// One setting, `name=value`.
struct Setting<'a> {
    name: &'a str,
    value: &'a str,
}

impl<'a> Setting<'a> {
    fn from_word(word: &'a str) -> Result<Self, Error> {
        match word.split_once('=') {
            Some((name, value)) => Ok(Self { name, value }),
            None => Err(Self { name: word, value: "" }.wrong("name=value")),
        }
    }

    fn wrong(&self, expected: &'static str) -> Error {
        Error::Setting { name: self.name.to_owned(), value: self.value.to_owned(), expected }
    }

    fn number<T: FromStr>(&self) -> Result<T, Error> {
        self.value.parse().map_err(|_| self.wrong("an integer"))
    }

    fn probability(&self) -> Result<f64, Error> {
        let parsed =
            self.value.parse().ok().filter(|probability| (0.0..=1.0).contains(probability));
        parsed.ok_or_else(|| self.wrong("a probability from 0 to 1"))
    }

    /// `first:second,first:second`
    fn pairs(&self) -> Option<Vec<(u64, u64)>> {
        let pair = |text: &str| {
            let (first, second) = text.split_once(':')?;
            Some((first.parse().ok()?, second.parse().ok()?))
        };
        self.value.split(',').map(pair).collect()
    }

    fn rates(&self) -> Result<Vec<RateStep>, Error> {
        let pairs = self.pairs().unwrap_or_default();
        let ascends = pairs.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if pairs.is_empty()
            || !ascends
            || pairs.iter().any(|&(_, bits_per_second)| bits_per_second == 0)
        {
            return Err(self.wrong("rates as from:bits_per_second, ascending in time and above 0"));
        }
        Ok(pairs
            .into_iter()
            .map(|(from, bits_per_second)| RateStep { from, bits_per_second })
            .collect())
    }

    fn intervals(&self) -> Result<Vec<Interval>, Error> {
        let pairs = self.pairs().filter(|pairs| pairs.iter().all(|(from, until)| from < until));
        let pairs =
            pairs.ok_or_else(|| self.wrong("intervals as from:until, none of them empty"))?;
        Ok(pairs.into_iter().map(|(from, until)| Interval { from, until }).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_read() {
        let words = "rate=0:150000000,5000000000:20000000 delay=12500000 loss=0.01 reorder=0.002 \
            reorder_delay=5000000 queue=1562500 seed=42 cut=3:5,8:9 stall=1:2";
        let expected = Settings {
            schedule: Schedule {
                rates: vec![
                    RateStep { from: 0, bits_per_second: 150_000_000 },
                    RateStep { from: 5_000_000_000, bits_per_second: 20_000_000 },
                ],
                stalls: vec![Interval { from: 1, until: 2 }],
                cuts: vec![Interval { from: 3, until: 5 }, Interval { from: 8, until: 9 }],
            },
            delay: 12_500_000,
            loss: 0.01,
            reorder: 0.002,
            reorder_delay: 5_000_000,
            queue_bytes: 1_562_500,
            seed: 42,
        };
        assert_eq!(words.parse::<Settings>().unwrap(), expected);
    }

    #[test]
    fn invalid_settings_are_rejected() {
        for wrong in [
            "",
            "rate=0:1",
            "queue=1",
            "rate=0:0 queue=1",
            "rate=5:1,5:2 queue=1",
            "rate=1 queue=1",
            "rate=0:1 queue=-1",
            "rate=0:1 queue=1 loss=1.5",
            "rate=0:1 queue=1 loss=NaN",
            "rate=0:1 queue=1 cut=5:5",
            "rate=0:1 queue=1 stall=5",
            "rate=0:1 queue=1 speed=5",
            "rate=0:1 queue=1 delay",
        ] {
            assert!(wrong.parse::<Settings>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_message_says_what_was_expected() {
        let error = "rate=0:1 queue=1 loss=2".parse::<Settings>().unwrap_err();
        assert_eq!(error.to_string(), "expected a probability from 0 to 1 for loss, found \"2\"");
    }
}
