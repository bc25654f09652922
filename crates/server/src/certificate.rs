//! The validity of a certificate, read from its DER bytes (RFC 5280 section 4.1.2.5). rustls serves
//! expired certificates without a warning.

use chrono::{DateTime, NaiveDateTime, Utc};

const SEQUENCE: u8 = 0x30;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// `[0]`: the version.
const VERSION: u8 = 0xA0;

/// The period in which a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Validity {
    pub(crate) begins: DateTime<Utc>,
    pub(crate) ends: DateTime<Utc>,
}

impl Validity {
    /// The validity of a DER certificate, or None if it can't be parsed.
    pub(crate) fn of(certificate: &[u8]) -> Option<Self> {
        let mut fields = Der(Der(Der(certificate).content(SEQUENCE)?).content(SEQUENCE)?);
        if fields.0.first() == Some(&VERSION) {
            fields.element()?;
        }
        // Serial number, signature algorithm, issuer.
        for _ in 0..3 {
            fields.element()?;
        }
        let mut validity = Der(fields.content(SEQUENCE)?);
        Some(Self { begins: validity.time()?, ends: validity.time()? })
    }

    /// Why a client would refuse the certificate at this time.
    pub(crate) fn fault(&self, now: DateTime<Utc>) -> Option<String> {
        let date = |time: DateTime<Utc>| time.format("%Y-%m-%d %H:%M:%S UTC");
        if now < self.begins {
            return Some(format!("is not valid before {}", date(self.begins)));
        }
        (now > self.ends).then(|| format!("expired on {}", date(self.ends)))
    }
}

/// The unread rest of a DER encoding.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The next element's tag and content.
    fn element(&mut self) -> Option<(u8, &'a [u8])> {
        let (&[tag, first], rest) = self.0.split_first_chunk()?;
        let (length, rest) = match first {
            0..=0x7F => (usize::from(first), rest),
            0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7F))?;
                (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }

    fn content(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.element().filter(|(found, _)| *found == tag).map(|(_, content)| content)
    }

    fn time(&mut self) -> Option<DateTime<Utc>> {
        let (tag, content) = self.element()?;
        let text = std::str::from_utf8(content).ok()?;
        let text = match tag {
            // Years have two digits; from 50 on they are of the 20th century.
            UTC_TIME => format!("{}{text}", if text.get(..2)? < "50" { "20" } else { "19" }),
            GENERALIZED_TIME => text.to_owned(),
            _ => return None,
        };
        NaiveDateTime::parse_from_str(&text, "%Y%m%d%H%M%SZ").ok().map(|time| time.and_utc())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    #[test]
    fn validity_is_read_and_judged() {
        for (begins, ends, fault) in [
            ((2020, 1, 2), (2021, 3, 4), Some("expired on 2021-03-04 00:00:00 UTC")),
            ((1999, 1, 1), (2049, 12, 31), None),
            ((2048, 1, 1), (2051, 6, 7), Some("is not valid before 2048-01-01 00:00:00 UTC")),
        ] {
            let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
            params.not_before = date_time_ymd(begins.0, begins.1, begins.2);
            params.not_after = date_time_ymd(ends.0, ends.1, ends.2);
            let (begins, ends) = (params.not_before, params.not_after);
            let made = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
            let validity = Validity::of(made.der()).unwrap();
            let now = DateTime::from_timestamp(1_780_000_000, 0).unwrap();
            assert_eq!(validity.fault(now).as_deref(), fault);
            assert_eq!(validity.begins.timestamp(), begins.unix_timestamp());
            assert_eq!(validity.ends.timestamp(), ends.unix_timestamp());
            for cut in 0..100 {
                assert_eq!(Validity::of(&made.der()[..cut]), None);
            }
        }
    }
}
