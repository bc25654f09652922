//! Sorts the entries of a run, one word of their keys after the other.
//!
//! Entries are sorted by the word that they have. Entries whose words are equal get the next word
//! of their keys, and are sorted among themselves. Each byte that many keys share is therefore
//! read once for each key, not once for each comparison. The word in which an entry differs from
//! the one before is its offset-value code. The first words of keys of fixed width may be made of
//! the bytes in which they differ ([`VaryingBytes`]).

use std::cmp::Ordering;
use std::ops::Range;

use crate::error::{Error, Result};
use crate::key::{Entry, VaryingBytes, has_next_word, word};

/// Entries whose keys share all words before `depth`, and which have the word at `depth`.
struct Group {
    entries: Range<usize>,
    depth: usize,
    /// The code of the first entry against the entry before the group: offset and value.
    first: (usize, u64),
}

/// Sorts entries by their keys, and by location where keys are equal, and gives them their codes.
/// Their words must be the first ones of their keys, or those of `varying`.
///
/// # Errors
/// [`Error::Internal`] if an entry has no key.
pub(crate) fn sort<'k>(
    entries: &mut [Entry],
    key: impl Fn(Entry) -> Option<&'k [u8]>,
    mut varying: Option<&VaryingBytes>,
) -> Result<()> {
    let key_or_none = &key;
    let key = |entry: Entry| {
        key_or_none(entry).ok_or_else(|| Error::missing("the key of a row that is sorted"))
    };
    sort_by_word(entries);
    let Some(least) = entries.first() else { return Ok(()) };
    let first = (0, word(key(*least)?, 0));
    let mut groups = vec![Group { entries: 0..entries.len(), depth: 0, first }];
    while let Some(group) = groups.pop() {
        // Only the first group has words of varying bytes.
        let varying = varying.take();
        let next_depth = |entry: Entry| match varying {
            Some(varying) => Ok(varying.next_word()),
            // No key is a prefix of another, so either all have a next word or none has.
            None => {
                key(entry).map(|key| has_next_word(key, group.depth).then_some(group.depth + 1))
            }
        };
        let (mut start, mut before) = (group.entries.start, None);
        while start < group.entries.end {
            let rest = &mut entries[start..group.entries.end];
            let entry = rest[0];
            let word_here = entry.word();
            let count = rest.iter().take_while(|entry| entry.word() == word_here).count();
            let first = match (before, varying) {
                (None, _) => group.first,
                (Some(_), None) => (group.depth, word_here),
                (Some(before), Some(varying)) => {
                    let offset = varying.offset(before, word_here);
                    let known = varying.key_word(word_here, offset);
                    (offset, known.map_or_else(|| key(entry).map(|key| word(key, offset)), Ok)?)
                }
            };
            match &mut rest[..count] {
                [one] => *one = one.with_code(first.0, first.1),
                equal => match next_depth(entry)? {
                    Some(depth) => {
                        for entry in equal.iter_mut() {
                            *entry = entry.with_word(word(key(*entry)?, depth));
                        }
                        sort_by_word(equal);
                        // If the code's offset is `depth`, its value was the word of `entry`, which
                        // may no longer be the first one.
                        let first = match equal.first() {
                            Some(entry) if first.0 == depth => (depth, entry.word()),
                            _ => first,
                        };
                        groups.push(Group { entries: start..start + count, depth, first });
                    }
                    None => {
                        equal.iter_mut().for_each(|entry| *entry = entry.with_code_equal());
                        if let [one, ..] = equal {
                            *one = one.with_code(first.0, first.1);
                        }
                    }
                },
            }
            start += count;
            before = Some(word_here);
        }
    }
    debug_assert!(is_sorted(entries, key_or_none), "entries are sorted, and duplicates are marked");
    Ok(())
}

/// Sorts by word, and by location where words are equal. The standard library's sort recognizes
/// entries that ascend or descend already, and passes over them once.
fn sort_by_word(entries: &mut [Entry]) {
    entries.sort_unstable();
}

/// Whether keys ascend, and exactly the entries with the key of the one before are duplicates,
/// which are in the order of their locations.
fn is_sorted<'k>(entries: &[Entry], key: impl Fn(Entry) -> Option<&'k [u8]>) -> bool {
    entries.windows(2).all(|pair| match key(pair[0]).cmp(&key(pair[1])) {
        Ordering::Less => !pair[1].is_duplicate(),
        Ordering::Equal => pair[1].is_duplicate() && pair[0].location() < pair[1].location(),
        Ordering::Greater => false,
    })
}

#[cfg(test)]
mod tests {
    use super::sort;
    use crate::key::{Entry, OffsetValueCode, VaryingBytes, word};

    /// Sorts keys of one width, which follow each other in `keys`, and compares the order and every
    /// code with those of whole keys.
    fn check(width: usize, keys: &[u8], what: &str) {
        let key_at = |row: usize| &keys[row * width..][..width];
        let key = |entry: Entry| key_at(entry.location().1);
        for varying in [VaryingBytes::find(width, [keys].into_iter()), None] {
            let first_word = |row| {
                varying
                    .as_ref()
                    .map_or_else(|| word(key_at(row), 0), |varying| varying.word(key_at(row)))
            };
            let rows = 0..keys.len() / width;
            let mut entries: Vec<Entry> =
                rows.clone().map(|row| Entry::new(first_word(row), 0, row)).collect();
            sort(&mut entries, |entry| Some(key(entry)), varying.as_ref()).unwrap();

            let mut expected: Vec<usize> = rows.collect();
            expected.sort_by_key(|row| key_at(*row));
            let found: Vec<usize> = entries.iter().map(|entry| entry.location().1).collect();
            assert_eq!(found, expected, "{what}, {varying:?}");
            assert_eq!(
                entries[0].code(),
                Some(OffsetValueCode::new(0, word(key(entries[0]), 0))),
                "{what}, {varying:?}"
            );
            for (i, pair) in entries.windows(2).enumerate() {
                let code = OffsetValueCode::between(key(pair[0]), key(pair[1]), 0);
                assert_eq!(
                    pair[1].code(),
                    Some(code),
                    "{what}, entry {} of {entries:?}, {varying:?}",
                    i + 1
                );
            }
        }
    }

    /// Random keys. A tenth are copies of others; the rest differ in the bytes `varies`, which have
    /// `values` values each.
    fn keys(seed: u64, width: usize, varies: &[usize], values: u64, rows: usize) -> Vec<u8> {
        let mut state = seed | 1;
        let mut below = |end: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % end
        };
        let mut keys = vec![7; width * rows];
        for row in 0..rows {
            let from = if below(10) == 0 { below(row as u64 + 1) as usize } else { row };
            keys.copy_within(from * width..(from + 1) * width, row * width);
            if from == row {
                varies.iter().for_each(|at| keys[row * width + at] = below(values) as u8);
            }
        }
        keys
    }

    #[test]
    fn a_code_is_that_of_the_first_of_its_group() {
        // Nine bytes vary, and the last two of them are in the second word of the key. Of the keys
        // with the same first eight bytes, the least one comes second.
        let key = |eighth: u8, ninth: u8| [0, 1, 2, 3, 4, 5, 6, 7, eighth, ninth];
        let keys =
            [key(0, 0), [0, 9, 9, 9, 9, 9, 9, 9, 9, 9], key(5, 9), key(5, 0), key(5, 4)].concat();
        check(10, &keys, "found");
    }

    #[test]
    fn codes_are_those_of_whole_keys() {
        let rounds = if cfg!(miri) { 1 } else { 12 };
        for width in [1, 7, 8, 9, 10, 12, 16, 17, 23, 24, 31, 40] {
            for run in [1, 2, 7, 8, 9, 10, 12, 17, 40] {
                for start in 0..width.min(18) {
                    for round in 0..rounds {
                        let varies: Vec<usize> = (start..width.min(start + run)).collect();
                        // Some bytes in between don't vary.
                        let varies: Vec<usize> = varies
                            .iter()
                            .copied()
                            .filter(|at| round % 3 == 0 || (at + round) % 5 != 0)
                            .collect();
                        let seed = (((width * 64 + run) * 64 + start) * 64 + round) as u64;
                        let keys = keys(seed, width, &varies, [2, 3, 200][round % 3], 40);
                        check(
                            width,
                            &keys,
                            &format!("width {width}, {varies:?} vary, seed {seed}"),
                        );
                    }
                }
            }
        }
    }
}
