//! Whether receipts prove a plan read: `spec/partitions.md` section 4.

use dray_wire::partition::{RandomId, Receipt};

use crate::error::{Error, ErrorKind, Result};

/// The most parts that an error names.
const NAMED_MAX: usize = 10;

/// That a plan was read whole, each part once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proof {
    /// The rows of all parts.
    pub rows: u64,
    /// Their digest. It is the same however the statement is divided.
    pub digest: u64,
    /// The number of parts.
    pub parts: usize,
}

/// Checks the receipts of the plan `id` of `count` parts.
///
/// # Errors
/// Usage for a receipt that is damaged or of another plan; Execution if parts were not read, or
/// read twice.
pub(super) fn verify<R: AsRef<[u8]>>(id: RandomId, count: usize, receipts: &[R]) -> Result<Proof> {
    let mut read: Vec<Option<Receipt>> = vec![None; count];
    for (i, bytes) in receipts.iter().enumerate() {
        let receipt = Receipt::decode(bytes.as_ref())
            .map_err(|cause| Error::usage(format!("receipt {i} can't be used: {cause}")))?;
        let place = read.get_mut(receipt.index as usize);
        let Some(place) = place.filter(|_| receipt.plan == id && receipt.count as usize == count)
        else {
            return Err(Error::usage(format!("receipt {i} is of another plan")));
        };
        match place {
            Some(before) if *before == receipt => {}
            Some(before) => return Err(read_twice(before, &receipt)),
            None => *place = Some(receipt),
        }
    }
    let missing =
        read.iter().enumerate().filter(|(_, receipt)| receipt.is_none()).map(|(index, _)| index);
    let missing = missing.collect::<Vec<_>>();
    if !missing.is_empty() {
        let named = missing.iter().take(NAMED_MAX).map(usize::to_string).collect::<Vec<_>>();
        let more = if missing.len() > NAMED_MAX { ", …" } else { "" };
        let what = format!(
            "{} of {count} parts have no receipt: {}{more}",
            missing.len(),
            named.join(", ")
        );
        return Err(Error::new(ErrorKind::Execution, what)
            .with_hint("read these parts to their ends and hand in their receipts, too"));
    }
    let mut all = read.iter().flatten();
    let digest = all.clone().map(|receipt| receipt.digest).fold(0, u64::wrapping_add);
    let rows = all.try_fold(0_u64, |rows, receipt| rows.checked_add(receipt.rows));
    let rows = rows.ok_or_else(|| Error::usage("the receipts have more rows than can be"))?;
    Ok(Proof { rows, digest, parts: count })
}

fn read_twice(one: &Receipt, two: &Receipt) -> Error {
    let part = one.index;
    match (one.rows, one.digest) == (two.rows, two.digest) {
        true => Error::new(
            ErrorKind::Execution,
            format!("part {part} was read twice, with the same rows"),
        )
        .with_hint("keep the rows and the receipt of one of the two"),
        false => Error::new(
            ErrorKind::Execution,
            format!(
                "part {part} was read twice, with different rows: {} and {} of them",
                one.rows, two.rows
            ),
        )
        .with_hint("the statement may call functions like random() or clock_timestamp()"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: RandomId = RandomId([7; 16]);

    fn receipt(index: u32, rows: u64, reading: u8) -> Receipt {
        let digest = u64::MAX - u64::from(index);
        Receipt { plan: PLAN, index, count: 3, rows, digest, reading: RandomId([reading; 16]) }
    }

    fn check(receipts: &[Receipt]) -> Result<Proof, String> {
        let receipts = receipts.iter().map(Receipt::encode).collect::<Vec<_>>();
        verify(PLAN, 3, &receipts).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn each_part_once() {
        let [a, b, c] = [receipt(0, 5, 1), receipt(1, 0, 2), receipt(2, 7, 3)];
        let proof = Proof { rows: 12, digest: 0_u64.wrapping_sub(6), parts: 3 };
        assert_eq!(check(&[a, b, c]), Ok(proof));
        // The order does not matter, and a receipt may arrive twice.
        assert_eq!(check(&[c, a, b, a]), Ok(proof));
        assert_eq!(check(&[a, c]), Err("1 of 3 parts have no receipt: 1".to_owned()));
        assert_eq!(check(&[]), Err("3 of 3 parts have no receipt: 0, 1, 2".to_owned()));
        let again = receipt(0, 5, 9);
        assert_eq!(
            check(&[a, b, c, again]),
            Err("part 0 was read twice, with the same rows".to_owned())
        );
        let other = Receipt { rows: 6, ..again };
        assert_eq!(
            check(&[a, b, c, other]),
            Err("part 0 was read twice, with different rows: 5 and 6 of them".to_owned())
        );
        for stranger in [Receipt { plan: RandomId([8; 16]), ..a }, Receipt { count: 4, ..a }] {
            assert_eq!(check(&[b, stranger]), Err("receipt 1 is of another plan".to_owned()));
        }
        let mut damaged = a.encode();
        damaged[33] ^= 1;
        let said = verify(PLAN, 3, &[damaged]).unwrap_err().to_string();
        assert!(said.contains("receipt 0 can't be used: the receipt was changed"), "{said}");
    }
}
