//! Sorts the entries of a piece, a word of their keys after the other.
//!
//! Entries are sorted by the word they have; those whose words are equal get their next word, and
//! are sorted among themselves. So bytes that many keys share are looked at once for each key, and
//! not again with each comparison; and where the words differ is the code of each entry against the
//! one before. The first words of keys of one width may be made of the bytes alone by which they
//! differ.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::key::{Entry, VaryingBytes, has_next_word, word};

/// Entries that share all words before `depth`.
struct Group {
    entries: Range<usize>,
    depth: usize,
    /// Depth and word by which the first of them differs from the entry before the group.
    first: (usize, u64),
}

/// Sorts entries that have the first words of their keys, or those of what varies in them, and
/// gives them their codes. Each has a key.
pub(crate) fn sort<'k>(
    entries: &mut [Entry],
    key: impl Fn(Entry) -> Option<&'k [u8]>,
    mut varying: Option<&VaryingBytes>,
) -> Result<()> {
    let key =
        |entry: Entry| key(entry).ok_or_else(|| Error::missing("the key of a row that is sorted"));
    sort_by_word(entries);
    let Some(least) = entries.first() else { return Ok(()) };
    let first = (0, word(key(*least)?, 0));
    let mut groups = vec![Group { entries: 0..entries.len(), depth: 0, first }];
    while let Some(group) = groups.pop() {
        // Of the first group alone.
        let varying = varying.take();
        let next_depth = |entry: Entry| match varying {
            Some(varying) => Ok(varying.behind()),
            // No key is the beginning of another, so either all go on or none.
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
                    let depth = varying.depth(before, word_here);
                    let known = varying.key_word(word_here, depth);
                    (depth, known.map_or_else(|| key(entry).map(|key| word(key, depth)), Ok)?)
                }
            };
            match &mut rest[..count] {
                [one] => *one = one.coded(first.0, first.1),
                equal => match next_depth(entry)? {
                    Some(depth) => {
                        for entry in equal.iter_mut() {
                            *entry = entry.with_word(word(key(*entry)?, depth));
                        }
                        sort_by_word(equal);
                        // They share the words before `depth`. That at it is only now known to be
                        // the first one's: `entry` may be another by now.
                        let first = match equal.first() {
                            Some(entry) if first.0 == depth => (depth, entry.word()),
                            _ => first,
                        };
                        groups.push(Group { entries: start..start + count, depth, first });
                    }
                    None => {
                        equal.iter_mut().for_each(|entry| *entry = entry.equal());
                        if let [one, ..] = equal {
                            *one = one.coded(first.0, first.1);
                        }
                    }
                },
            }
            start += count;
            before = Some(word_here);
        }
    }
    Ok(())
}

/// Sorts by words, and in the order of the rows where these are equal. Entries that rise or fall
/// already are looked at once (std's sort sees to that).
fn sort_by_word(entries: &mut [Entry]) {
    entries.sort_unstable();
}

#[cfg(test)]
mod tests {
    use super::sort;
    use crate::key::{Entry, OffsetValueCode, VaryingBytes, word};

    /// Sorts keys of one width, one behind the other, and holds their order and every code against
    /// those of whole keys.
    fn check(width: usize, keys: &[u8], what: &str) {
        let key_at = |row: usize| &keys[row * width..][..width];
        let key = |entry: Entry| key_at(entry.place().1);
        for varying in [VaryingBytes::of(width, [keys].into_iter()), None] {
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
            let found: Vec<usize> = entries.iter().map(|entry| entry.place().1).collect();
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

    /// A tenth of the keys are those of others; of each key these bytes vary, with so many values.
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
        // Nine bytes vary, of which the eighth and the ninth share the second word of the key. Of
        // the keys that have the same eight, the least one comes second.
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
                        // Some bytes between them are the same.
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
