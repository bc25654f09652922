//! A loser tree (tournament tree): finds the source with the least row, with one comparison for
//! each level of the tree.
//!
//! ```text
//!                  winner: source 2
//!                       │
//!                  ┌── 1: 0 ──┐              An inner node has the loser of its match; the winner
//!              ┌ 2: 1 ┐    ┌ 3: 3 ┐          goes up. The winner's next row starts again at its
//!              0      1    2      3          leaf, and meets the losers on its way.
//! ```

use crate::error::Result;
use crate::key::OffsetValueCode;

/// A source, and the code of its row against the last winner.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Player {
    pub code: OffsetValueCode,
    pub source: u32,
}

/// The winner in node 0, and the losers in the other nodes. Node n has the children 2n and 2n + 1;
/// with k sources, node k + i is the leaf of source i, and is not stored.
#[derive(Debug)]
pub(crate) struct LoserTree {
    nodes: Vec<Player>,
}

impl LoserTree {
    /// A tree of sources with these codes, all against the same base. `break_tie` is called for two
    /// sources with equal codes: it returns whether the row of the first one is less, and the code
    /// of the greater row against the lesser one.
    pub fn new(
        codes: &[OffsetValueCode],
        break_tie: &mut impl FnMut(Player, Player) -> Result<(bool, OffsetValueCode)>,
    ) -> Result<Self> {
        let player = |(source, code): (usize, &OffsetValueCode)| Player {
            code: *code,
            source: source as u32,
        };
        let leaves: Vec<Player> = codes.iter().enumerate().map(player).collect();
        let mut tree = Self { nodes: leaves.clone() };
        // The winner of each node, from the leaves up.
        let mut winners: Vec<Player> = leaves.iter().chain(&leaves).copied().collect();
        for node in (1..leaves.len()).rev() {
            (winners[node], tree.nodes[node]) =
                play(winners[2 * node], winners[2 * node + 1], break_tie)?;
        }
        if let (Some(place), Some(winner)) = (tree.nodes.get_mut(0), winners.get(1)) {
            *place = *winner;
        }
        Ok(tree)
    }

    /// The source with the least row; `None` if there are no sources.
    #[inline(always)]
    pub fn winner(&self) -> Option<Player> {
        self.nodes.first().copied()
    }

    /// Replaces the winner's row by the next one of its source, which has this code against it.
    #[inline]
    pub fn replace(
        &mut self,
        code: OffsetValueCode,
        break_tie: &mut impl FnMut(Player, Player) -> Result<(bool, OffsetValueCode)>,
    ) -> Result<()> {
        let Some(winner) = self.winner() else { return Ok(()) };
        debug_assert!((winner.source as usize) < self.nodes.len(), "a player has a leaf");
        let mut player = Player { code, ..winner };
        let mut node = (player.source as usize + self.nodes.len()) / 2;
        while let Some(other) = self.nodes.get_mut(node).filter(|_| node > 0) {
            // Selects instead of branching: either player wins about as often, so a branch would
            // be mispredicted.
            if other.code == player.code {
                (player, *other) = play(player, *other, break_tie)?;
            } else {
                let (low, high) =
                    if other.code < player.code { (*other, player) } else { (player, *other) };
                (player, *other) = (low, high);
            }
            node /= 2;
        }
        if let Some(place) = self.nodes.first_mut() {
            *place = player;
        }
        Ok(())
    }
}

/// The winner and the loser of a match. If the codes differ, the loser's code against the winner is
/// the one that it has.
#[inline]
fn play(
    a: Player,
    b: Player,
    break_tie: &mut impl FnMut(Player, Player) -> Result<(bool, OffsetValueCode)>,
) -> Result<(Player, Player)> {
    if a.code < b.code {
        return Ok((a, b));
    }
    if b.code < a.code {
        return Ok((b, a));
    }
    Ok(match break_tie(a, b)? {
        (true, code) => (a, Player { code, ..b }),
        (false, code) => (b, Player { code, ..a }),
    })
}
