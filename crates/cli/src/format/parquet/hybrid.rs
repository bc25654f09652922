//! The hybrid of repeated values and bit-packed groups in which Parquet stores definition levels
//! and indexes into a dictionary (Encodings.md, "Run Length Encoding / Bit-Packing Hybrid").
//!
//! ```text
//!   repeated: ┌ count << 1 ┬ value ┐    packed: ┌ groups << 1 | 1 ┬ 8 values ┬ 8 values ┬ … ┐
//! ```

/// The values of a group.
const GROUP: usize = 8;
/// The most groups after a header, which then is one byte.
const GROUPS_MAX: usize = 63;
/// Repeated levels save bytes from this many groups on, which take a byte each.
const LEVEL_GROUPS_MIN: usize = 4;

/// Appends the indexes, each of which has `width` bits.
pub(super) fn encode_indexes(indexes: &[u32], width: u32, out: &mut Vec<u8>) {
    let mut runs = Runs::new(width, out);
    let mut rest = indexes;
    while let Some(group) = rest.first_chunk::<GROUP>() {
        let first = group[0];
        let used = if group.iter().all(|index| *index == first) {
            let count = rest.iter().take_while(|index| **index == first).count();
            runs.repeat(first, count);
            count
        } else {
            runs.pack(group);
            GROUP
        };
        rest = &rest[used..];
    }
    if !rest.is_empty() {
        let mut padded = [0; GROUP];
        padded[..rest.len()].copy_from_slice(rest);
        runs.pack(&padded);
    }
}

/// Appends the definition levels of `rows` values: 1 if the bit of a value is set, else 0. Bits
/// after the last value are zero.
pub(super) fn encode_validity(bits: &[u8], rows: usize, out: &mut Vec<u8>) {
    let mut runs = Runs::new(1, out);
    let mut rest = &bits[..rows / GROUP];
    while let Some(&first) = rest.first() {
        let same = match first {
            0 | u8::MAX => rest.iter().take_while(|byte| **byte == first).count(),
            _ => 1,
        };
        if same >= LEVEL_GROUPS_MIN {
            runs.repeat(u32::from(first & 1), same * GROUP);
        } else {
            rest[..same].iter().for_each(|byte| runs.group(&[*byte]));
        }
        rest = &rest[same..];
    }
    if !rows.is_multiple_of(GROUP) {
        runs.group(&bits[rows / GROUP..=rows / GROUP]);
    }
}

/// Appends the definition levels of `rows` values that all have `level`.
pub(super) fn encode_levels(level: u32, rows: usize, out: &mut Vec<u8>) {
    Runs::new(1, out).repeat(level, rows);
}

struct Runs<'a> {
    width: u32,
    out: &'a mut Vec<u8>,
    /// Where the header of the last packed groups is, and their number.
    header: usize,
    groups: usize,
}

impl<'a> Runs<'a> {
    fn new(width: u32, out: &'a mut Vec<u8>) -> Self {
        Self { width, out, header: 0, groups: 0 }
    }

    fn repeat(&mut self, value: u32, count: usize) {
        self.groups = 0;
        let mut header = count << 1;
        while header > 0x7f {
            self.out.push(header as u8 | 0x80);
            header >>= 7;
        }
        self.out.push(header as u8);
        self.out.extend_from_slice(&value.to_le_bytes()[..self.width.div_ceil(8) as usize]);
    }

    fn pack(&mut self, values: &[u32; GROUP]) {
        let mut packed = [0; GROUP * size_of::<u32>()];
        let (mut bits, mut filled, mut end) = (0_u64, 0, 0);
        for value in values {
            bits |= u64::from(*value) << filled;
            filled += self.width;
            if filled >= u32::BITS {
                packed[end..end + 4].copy_from_slice(&(bits as u32).to_le_bytes());
                (bits, filled, end) = (bits >> u32::BITS, filled - u32::BITS, end + 4);
            }
        }
        // A group has as many bytes as a value has bits.
        let rest = self.width as usize - end;
        packed[end..][..rest].copy_from_slice(&bits.to_le_bytes()[..rest]);
        self.group(&packed[..self.width as usize]);
    }

    fn group(&mut self, packed: &[u8]) {
        if self.groups == 0 || self.groups == GROUPS_MAX {
            (self.header, self.groups) = (self.out.len(), 0);
            self.out.push(0);
        }
        self.groups += 1;
        self.out[self.header] = (self.groups << 1 | 1) as u8;
        self.out.extend_from_slice(packed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values, and zeros up to the end of a group.
    fn decode(mut bytes: &[u8], width: usize) -> Vec<u32> {
        let mut values = Vec::new();
        while !bytes.is_empty() {
            let (mut header, mut shift) = (0, 0);
            loop {
                let byte = bytes[0];
                bytes = &bytes[1..];
                header |= usize::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    break;
                }
            }
            if header & 1 == 0 {
                let mut value = [0; 4];
                value[..width.div_ceil(8)].copy_from_slice(&bytes[..width.div_ceil(8)]);
                values.extend(std::iter::repeat_n(u32::from_le_bytes(value), header >> 1));
                bytes = &bytes[width.div_ceil(8)..];
            } else {
                let count = (header >> 1) * GROUP;
                let bit = |at: usize| u32::from(bytes[at / 8] >> (at % 8) & 1);
                values.extend(
                    (0..count).map(|value| {
                        (0..width).map(|at| bit(value * width + at) << at).sum::<u32>()
                    }),
                );
                bytes = &bytes[(header >> 1) * width..];
            }
        }
        values
    }

    #[test]
    fn indexes_come_back() {
        for width in 0..=32 {
            let mask = ((1_u64 << width) - 1) as u32;
            for count in [0, 1, 7, 8, 9, 63, 64, 600, 1003] {
                for repeats in [1, 7, 9, 40, 2000] {
                    let index =
                        |at: usize| ((at / repeats) as u32).wrapping_mul(0x9E37_79B1) & mask;
                    let indexes: Vec<u32> = (0..count).map(index).collect();
                    let mut bytes = Vec::new();
                    encode_indexes(&indexes, width as u32, &mut bytes);
                    let decoded = decode(&bytes, width);
                    assert_eq!(decoded[..count], indexes);
                    assert!(decoded[count..].iter().all(|pad| *pad == 0));
                }
            }
        }
    }

    #[test]
    fn validity_comes_back() {
        for rows in [1_usize, 8, 9, 100, 803, 20_000] {
            for step in [1, 2, 7, 64, 300, 30_000] {
                let is_valid =
                    |row: usize| row % step == step - 1 || (row / step).is_multiple_of(3);
                let mut bits = vec![0; rows.div_ceil(8)];
                (0..rows)
                    .filter(|row| is_valid(*row))
                    .for_each(|row| bits[row / 8] |= 1 << (row % 8));
                let mut bytes = Vec::new();
                encode_validity(&bits, rows, &mut bytes);
                let levels: Vec<u32> = (0..rows).map(|row| u32::from(is_valid(row))).collect();
                assert_eq!(decode(&bytes, 1)[..rows], levels);
            }
        }
        let mut bytes = Vec::new();
        encode_levels(1, 1000, &mut bytes);
        assert_eq!(bytes, [0xd0, 0x0f, 1]);
    }
}
