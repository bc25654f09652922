//! A loser tree: which of several sources has the least row, after one comparison for each level of
//! a tree.
//!
//! ```text
//!                  winner: source 2
//!                       │
//!                  ┌── 1: 0 ──┐              An inner node has who lost there; the winner went on up.
//!              ┌ 2: 1 ┐    ┌ 3: 3 ┐          When it has its next row, that goes up from the winner's leaf again,
//!              0      1    2      3          and meets all that it has to be compared with.
//! ```

use crate::error::Result;
use crate::key::OffsetValueCode;

/// A source and its row's code against the row that won last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Player {
    pub code: OffsetValueCode,
    pub source: u32,
}

/// Losers in 1.., the winner in 0. Node n has the children 2n and 2n + 1; nodes from the number of
/// sources on are these.
#[derive(Debug)]
pub(crate) struct LoserTree {
    nodes: Vec<Player>,
}

impl LoserTree {
    /// A tree of sources with the codes of their first rows against one and the same row. `settle`
    /// is called for two whose codes are the same: it says whether the first one's row is less, and
    /// the other one's code against it.
    pub fn new(
        codes: &[OffsetValueCode],
        settle: &mut impl FnMut(Player, Player) -> Result<(bool, OffsetValueCode)>,
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
                play(winners[2 * node], winners[2 * node + 1], settle)?;
        }
        if let (Some(place), Some(winner)) = (tree.nodes.get_mut(0), winners.get(1)) {
            *place = *winner;
        }
        Ok(tree)
    }

    /// The source with the least row; none if there are no sources.
    #[inline(always)]
    pub fn winner(&self) -> Option<Player> {
        self.nodes.first().copied()
    }

    /// Gives the winner's source its next row, whose code is against the one it had.
    #[inline]
    pub fn replace(
        &mut self,
        code: OffsetValueCode,
        settle: &mut impl FnMut(Player, Player) -> Result<(bool, OffsetValueCode)>,
    ) -> Result<()> {
        let Some(winner) = self.winner() else { return Ok(()) };
        let mut player = Player { code, ..winner };
        let mut node = (player.source as usize + self.nodes.len()) / 2;
        while let Some(other) = self.nodes.get_mut(node).filter(|_| node > 0) {
            // The one that was there loses as often as not, so that a branch would be guessed
            // wrong.
            if other.code == player.code {
                (player, *other) = play(player, *other, settle)?;
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

/// Winner and loser. A loser keeps its code where the codes differ, for then it is the same against
/// the winner.
#[inline]
fn play(
    a: Player,
    b: Player,
    settle: &mut impl FnMut(Player, Player) -> Result<(bool, OffsetValueCode)>,
) -> Result<(Player, Player)> {
    if a.code < b.code {
        return Ok((a, b));
    }
    if b.code < a.code {
        return Ok((b, a));
    }
    Ok(match settle(a, b)? {
        (true, code) => (a, Player { code, ..b }),
        (false, code) => (b, Player { code, ..a }),
    })
}
