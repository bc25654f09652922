//! Sorts the entries of a piece, a word of their keys after the other.
//!
//! Entries are sorted by the word they have; those whose words are equal get their next word, and are sorted among themselves. So bytes that
//! many keys share are looked at once for each key, and not again with each comparison; and where the words differ is
//! the code of each entry against the one before.

use std::ops::Range;

use crate::code::{goes_on, word};
use crate::entry::Entry;

/// Entries that share all words before `depth`.
struct Group {
    entries: Range<usize>,
    depth: usize,
    /// Depth and word by which the first of them differs from the entry before the group.
    first: (usize, u64),
}

/// Sorts entries that have their first words, and gives them their codes.
pub(crate) fn sort<'k>(entries: &mut [Entry], key: impl Fn(Entry) -> &'k [u8]) {
    sort_by_word(entries);
    let first = (0, entries.first().map_or(0, |entry| entry.word()));
    let mut groups = vec![Group { entries: 0..entries.len(), depth: 0, first }];
    while let Some(group) = groups.pop() {
        let mut start = group.entries.start;
        while let Some(entry) = entries.get(start).filter(|_| start < group.entries.end).copied() {
            let word_here = entry.word();
            let rest = entries.get(start..group.entries.end).unwrap_or_default();
            let count = rest.iter().take_while(|entry| entry.word() == word_here).count();
            let first = if start == group.entries.start { group.first } else { (group.depth, word_here) };
            let equal = entries.get_mut(start..start + count).unwrap_or_default();
            match equal {
                [one] => *one = one.coded(first.0, first.1),
                // No key is the beginning of another, so either all go on or none.
                equal if goes_on(key(entry), group.depth) => {
                    equal.iter_mut().for_each(|entry| *entry = entry.with_word(word(key(*entry), group.depth + 1)));
                    sort_by_word(equal);
                    groups.push(Group { entries: start..start + count, depth: group.depth + 1, first });
                }
                equal => {
                    equal.iter_mut().for_each(|entry| *entry = entry.equal());
                    if let [one, ..] = equal {
                        *one = one.coded(first.0, first.1);
                    }
                }
            }
            start += count;
        }
    }
}

/// Sorts by words, and in the order of the rows where these are equal. Entries that rise or fall already are looked at once (std's sort sees to that).
fn sort_by_word(entries: &mut [Entry]) {
    entries.sort_unstable();
}
