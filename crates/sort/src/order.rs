//! Sorts the entries of a piece, a word of their keys after the other.
//!
//! Entries are sorted by the word they have; those whose words are equal get their next word, and are sorted among themselves. So bytes that
//! many keys share are looked at once for each key, and not again with each comparison; and where the words differ is
//! the code of each entry against the one before. The first words of keys of one width may be made of the bytes alone by which they differ.

use std::ops::Range;

use crate::code::{goes_on, word};
use crate::entry::Entry;
use crate::varying::Varying;

/// Entries that share all words before `depth`.
struct Group {
    entries: Range<usize>,
    depth: usize,
    /// Depth and word by which the first of them differs from the entry before the group.
    first: (usize, u64),
}

/// Sorts entries that have the first words of their keys, or those of what varies in them, and gives them their codes.
pub(crate) fn sort<'k>(entries: &mut [Entry], key: impl Fn(Entry) -> &'k [u8], mut varying: Option<&Varying>) {
    sort_by_word(entries);
    let first = (0, entries.first().map_or(0, |entry| word(key(*entry), 0)));
    let mut groups = vec![Group { entries: 0..entries.len(), depth: 0, first }];
    while let Some(group) = groups.pop() {
        // Of the first group alone.
        let varying = varying.take();
        let next_depth = |entry: Entry| match varying {
            Some(varying) => varying.behind(),
            // No key is the beginning of another, so either all go on or none.
            None => goes_on(key(entry), group.depth).then_some(group.depth + 1),
        };
        let (mut start, mut before) = (group.entries.start, None);
        while let Some(entry) = entries.get(start).filter(|_| start < group.entries.end).copied() {
            let word_here = entry.word();
            let rest = entries.get(start..group.entries.end).unwrap_or_default();
            let count = rest.iter().take_while(|entry| entry.word() == word_here).count();
            let first = match (before, varying) {
                (None, _) => group.first,
                (Some(_), None) => (group.depth, word_here),
                (Some(before), Some(varying)) => {
                    let depth = varying.depth(before, word_here);
                    (depth, varying.key_word(word_here, depth).unwrap_or_else(|| word(key(entry), depth)))
                }
            };
            match entries.get_mut(start..start + count).unwrap_or_default() {
                [one] => *one = one.coded(first.0, first.1),
                equal => match next_depth(entry) {
                    Some(depth) => {
                        equal.iter_mut().for_each(|entry| *entry = entry.with_word(word(key(*entry), depth)));
                        sort_by_word(equal);
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
}

/// Sorts by words, and in the order of the rows where these are equal. Entries that rise or fall already are looked at once (std's sort sees to that).
fn sort_by_word(entries: &mut [Entry]) {
    entries.sort_unstable();
}
