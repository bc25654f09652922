//! Divides a table into ranges of a key with about the same number of rows.

use dray_mysql::{CancelCheck as SocketCheck, Connection as Socket, Key, Session, TableScan};

use super::explain::explain;
use super::keys::KeySpace;
use crate::error::{Error, ErrorKind, Result};

/// The most ranges that are asked about in one statement.
const ASKED_AT_ONCE: usize = 64;
/// The most times that ranges are halved: the bits of a key's position.
const HALVINGS_MAX: usize = 100;

/// Values of a key from a position up to, but without, another, with the rows that are expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    from: i128,
    to: i128,
    rows: u64,
}

/// The literals, in the order of the server, that divide a table into about `count` parts of the
/// same size, by values between the positions `from` and `to`. Halves ranges until none has more
/// rows than a part, by the server's estimates, which come from looking into the index. So keys
/// that lie in heaps are divided as well as others.
///
/// # Errors
/// When the connection breaks or the statement is cancelled.
pub(super) fn divide(
    session: &mut Session<Socket>,
    scan: &TableScan,
    key: &Key,
    (space, from, to): (&KeySpace, i128, i128),
    count: usize,
    check: SocketCheck<'_>,
) -> Result<Vec<String>> {
    let mut ask = |pieces: &mut [Piece]| -> Result<()> {
        for asked in pieces.chunks_mut(ASKED_AT_ONCE) {
            let queries = asked.iter().map(|piece| {
                let [from, to] = [piece.from, piece.to].map(|end| space.literal(end));
                scan.count_range(key, Some(&from), Some(&to))
            });
            let sql = queries.collect::<Vec<_>>().join(" UNION ALL ");
            let lines = explain(session, &sql, check)?;
            if lines.len() < asked.len() {
                return Err(Error::new(ErrorKind::Protocol, "a plan has too few lines"));
            }
            for (piece, line) in asked.iter_mut().zip(&lines) {
                piece.rows = line.rows;
            }
        }
        Ok(())
    };
    let mut pieces = vec![Piece { from, to, rows: 0 }];
    ask(&mut pieces)?;
    let part_rows = |pieces: &[Piece]| {
        let rows = pieces.iter().map(|piece| piece.rows).sum::<u64>();
        rows.div_ceil(count as u64).max(1)
    };
    for _ in 0..HALVINGS_MAX {
        let large = part_rows(&pieces);
        let is_large = |piece: &Piece| piece.rows > large && piece.to - piece.from > 1;
        if pieces.len() > 8 * count || !pieces.iter().any(is_large) {
            break;
        }
        let mut next = Vec::with_capacity(pieces.len() * 2);
        for piece in pieces {
            match is_large(&piece) {
                true => next.extend(halves(piece)),
                false => next.push(piece),
            }
        }
        ask(&mut next)?;
        pieces = next;
    }
    let bounds = bounds(&pieces, part_rows(&pieces));
    let literals = bounds.into_iter().map(|bound| space.literal(bound)).collect();
    match space.is_collated() {
        true => sorted(session, literals, check),
        false => Ok(literals),
    }
}

/// Literals in the order of their collation, without those that are equal in it.
fn sorted(
    session: &mut Session<Socket>,
    literals: Vec<String>,
    check: SocketCheck<'_>,
) -> Result<Vec<String>> {
    if literals.len() < 2 {
        return Ok(literals);
    }
    let rows =
        literals.iter().enumerate().map(|(i, bound)| format!("SELECT {i} AS i, {bound} AS b"));
    let rows = rows.collect::<Vec<_>>().join(" UNION ALL ");
    let order = session.ask(&format!("SELECT i FROM ({rows}) bounds ORDER BY b"), check)?;
    let order = order.into_iter().flatten().map(|i| i.and_then(|i| i.parse::<usize>().ok()));
    let Some(order) = order.collect::<Option<Vec<_>>>() else { return Err(unordered()) };
    let ordered = order.iter().map(|i| literals.get(*i).cloned()).collect::<Option<Vec<_>>>();
    let ordered = ordered.filter(|all| all.len() == literals.len()).ok_or_else(unordered)?;
    let pairs = ordered.windows(2).map(|pair| format!("STRCMP({}, {})", pair[0], pair[1]));
    let pairs = pairs.collect::<Vec<_>>().join(", ");
    let compared = session.ask(&format!("SELECT {pairs}"), check)?;
    let mut compared = compared.into_iter().flatten();
    let mut rising = ordered[..1].to_vec();
    for bound in ordered.into_iter().skip(1) {
        match compared.next().flatten().as_deref() {
            Some("-1") => rising.push(bound),
            Some("0") => {}
            _ => return Err(unordered()),
        }
    }
    Ok(rising)
}

fn unordered() -> Error {
    Error::new(ErrorKind::Protocol, "the server does not sort bounds as it was asked to")
}

fn halves(piece: Piece) -> [Piece; 2] {
    let middle = piece.from + (piece.to - piece.from) / 2;
    [Piece { to: middle, ..piece }, Piece { from: middle, ..piece }]
}

/// Joins neighbours that are small, and returns where parts begin, but for the first.
fn bounds(pieces: &[Piece], part_rows: u64) -> Vec<i128> {
    let mut bounds = Vec::new();
    let mut rows = 0_u64;
    for piece in pieces {
        if rows > 0 && rows.saturating_add(piece.rows / 2) > part_rows {
            bounds.push(piece.from);
            rows = 0;
        }
        rows = rows.saturating_add(piece.rows);
    }
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(rows: &[u64]) -> Vec<Piece> {
        let piece =
            |(i, rows): (usize, &u64)| Piece { from: i as i128, to: i as i128 + 1, rows: *rows };
        rows.iter().enumerate().map(piece).collect()
    }

    #[test]
    fn neighbours_are_joined() {
        assert_eq!(bounds(&pieces(&[5, 5, 5, 5]), 10), [2]);
        assert_eq!(bounds(&pieces(&[0, 0, 100, 1, 1, 100]), 50), [3, 5]);
        assert_eq!(bounds(&pieces(&[7]), 1), [0; 0]);
        assert_eq!(bounds(&pieces(&[0, 0]), 1), [0; 0]);
    }

    #[test]
    fn halves_have_no_hole() {
        let piece = Piece { from: -3, to: 2, rows: 9 };
        let [a, b] = halves(piece);
        assert_eq!((a.from, a.to, b.from, b.to), (-3, -1, -1, 2));
    }
}
