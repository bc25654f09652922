//! Strings: `spec/encodings.md` section 3.

use bytes::Bytes;

use super::checks::{check_indexes, check_offsets};
use super::fixed::Codes;
use super::string_entries::{StringEntries, even_offsets};
use super::{Destination, Reader};
use crate::column::{Values, u32s};
use crate::error::{Result, refuse};
use crate::layout::{COUNT_MAX, check_count};
use crate::output::OutputBuffer;
use crate::utf8::check_utf8;

impl Reader<'_, '_> {
    /// n strings. The caller has charged their offsets. Their data is always the column's; `to` is
    /// for the offsets.
    pub(super) fn strings(&mut self, n: usize, utf8: bool, to: Destination) -> Result<Values> {
        match self.descriptors.clone().u8("encoding")? {
            0 | 2 | 4 => {
                let (offsets, data) = self.flat_strings(n, utf8, to, Destination::Column)?;
                self.charge(data.len(), 1)?;
                Ok(Values::Bytes { offsets, data })
            }
            1 => {
                self.note("constant");
                self.descriptors.u8("encoding")?;
                let stored = self.next_buffer()?;
                if n == 0 {
                    refuse!(Constant, "a constant for no values");
                }
                // Both are below 2^32.
                let total = n * stored.raw_bytes;
                self.check_string_bytes(total)?;
                let value = self.unpack(stored, Destination::Scratch)?;
                if utf8 {
                    check_utf8(&value, [].into_iter())?;
                }
                self.charge(total, 1)?;
                let mut data = self.output(total, Destination::Column)?;
                repeat(&value, n, &mut data);
                let mut offsets = self.output((n + 1) * 4, to)?;
                even_offsets(n, value.len(), &mut offsets);
                Ok(Values::Bytes { offsets: offsets.finish()?, data: data.finish()? })
            }
            3 => {
                self.note("dictionary");
                self.descriptors.u8("encoding")?;
                let count = self.dictionary_count(n)?;
                let (entry_offsets, entries) =
                    self.flat_strings(count, utf8, Destination::Scratch, Destination::Scratch)?;
                self.dictionary_strings(n, &entry_offsets, &entries, to)
            }
            5 => {
                self.note("stream dictionary");
                self.descriptors.u8("encoding")?;
                let tables = self.tables;
                let (offsets, data) = tables.strings(self.descriptors.u32("table")?, utf8)?;
                self.dictionary_strings(n, offsets, data, to)
            }
            code => refuse!(Code, "unknown string encoding {code}"),
        }
    }

    /// n strings given by their indexes into entries.
    fn dictionary_strings(
        &mut self,
        n: usize,
        entry_offsets: &[u8],
        entries: &[u8],
        to: Destination,
    ) -> Result<Values> {
        let indexes = self.fixed(n, 4, Codes::PARTS, Destination::Scratch)?;
        check_indexes(&indexes, entry_offsets.len() / 4 - 1)?;
        let entries = StringEntries::new(entry_offsets, entries)?;
        let total = entries.total(&indexes);
        self.check_string_bytes(total)?;
        self.charge(total, 1)?;
        check_count(total)?;
        let (mut offsets, mut data) =
            (self.output((n + 1) * 4, to)?, self.output(total, Destination::Column)?);
        entries.gather(&indexes, &mut offsets, &mut data)?;
        Ok(Values::Bytes { offsets: offsets.finish()?, data: data.finish()? })
    }

    /// The checked offsets and data of n strings that are coded as offsets, lengths or symbols.
    pub(super) fn flat_strings(
        &mut self,
        n: usize,
        utf8: bool,
        offsets_to: Destination,
        data_to: Destination,
    ) -> Result<(Bytes, Bytes)> {
        let code = self.descriptors.u8("encoding")?;
        let (offsets, total) = match code {
            0 => {
                let offsets = self.buffer((n + 1) * 4, offsets_to)?;
                let total = check_offsets(&offsets)?;
                (offsets, total)
            }
            2 | 4 => {
                self.note("lengths");
                self.offsets_of_lengths(n, offsets_to)?
            }
            code => refuse!(Code, "encoding {code} for the entries of a dictionary"),
        };
        self.check_string_bytes(total)?;
        let data = if code == 4 {
            self.symbols(total, data_to)?
        } else {
            let stored = self.next_buffer()?;
            if stored.raw_bytes != total {
                refuse!(Offsets, "the strings end at {total}, their data at {}", stored.raw_bytes);
            }
            self.unpack(stored, data_to)?
        };
        if utf8 {
            check_utf8(&data, u32s(&offsets))?;
        }
        Ok((offsets, data))
    }

    /// Reads n lengths as offsets. Returns these and the last of them.
    pub(super) fn offsets_of_lengths(
        &mut self,
        n: usize,
        to: Destination,
    ) -> Result<(Bytes, usize)> {
        let lengths = self.fixed(n, 4, Codes::PARTS, Destination::Scratch)?;
        let mut offsets = self.output((n + 1) * 4, to)?;
        let mut total = 0;
        offsets.append(|out| {
            out.push([0; 4]);
            let mut end = 0u64;
            out.extend(u32s(&lengths).map(|length| {
                end += u64::from(length);
                // If this truncates, the total is refused below.
                (end as u32).to_le_bytes()
            }));
            total = end;
        });
        match usize::try_from(total) {
            Ok(total) if total <= COUNT_MAX => Ok((offsets.finish()?, total)),
            _ => refuse!(Limit, "lengths add up to {total}, over the limit of {COUNT_MAX}"),
        }
    }
}

/// Writes `value` n times.
fn repeat(value: &[u8], n: usize, out: &mut OutputBuffer) {
    /// Short values are copied in groups of this size.
    const STEP_BYTES: usize = 4096;
    if let [byte] = value {
        return out.append(|out| out.repeat(*byte, n));
    }
    let at_a_time = (STEP_BYTES / value.len().max(1)).clamp(1, n.max(1));
    let some = value.repeat(at_a_time);
    out.append(|out| {
        (0..n / at_a_time).for_each(|_| out.extend_from_slice(&some));
        out.extend_from_slice(&some[..n % at_a_time * value.len()]);
    });
}
