//! Tickets and passes: what lets readers read the parts of a plan, and nothing else
//! (`spec/protocol.md` section 12).
//!
//! The server keeps nothing of a plan. A ticket says what a part is, and a keyed digest proves that
//! this run of the server wrote it, for this statement. The key is drawn at the start, so nothing
//! outlives the run, as the tables don't either. Servers with a common secret derive the key from
//! it, and the name of the run from the secret and what they serve: those that serve the same
//! versions of the same files are as one run.
//!
//! ```text
//!   pass   = run 16 | plan 16 | deadline 8 | HMAC 32       as hexadecimal digits, behind "pass-"
//!   ticket = run 16 | plan 16 | deadline 8 | target 4 | from 4 | to 4 | digest 32 | HMAC 32
//! ```

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dray_wire::{ErrorKind, PASS_PREFIX, Query, Secret, ServerError};
use ring::digest::{SHA256, SHA256_OUTPUT_LEN};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

use crate::catalog::Fingerprint;
use crate::engine::{Portion, error};

/// The longest lease.
const LEASE_MAX: Duration = Duration::from_secs(24 * 3600);
const ID_BYTES: usize = 16;
const DEADLINE_BYTES: usize = 8;
const START_BYTES: usize = 2 * ID_BYTES + DEADLINE_BYTES;
const PORTION_BYTES: usize = 3 * 4 + SHA256_OUTPUT_LEN;
/// The numbers of a ticket that are no portion, since it would be empty: that of a whole statement,
/// and the last two of a source's part.
const WHOLE: [u32; 3] = [0; 3];
const OF_SOURCE: u32 = 1;
/// Keep a pass from being read as a ticket.
const OF_PASSES: &[u8] = b"dray pass";
const OF_TICKETS: &[u8] = b"dray ticket";
/// Keep what is derived from a secret apart.
const OF_KEYS: &[u8] = b"dray plan key";
const OF_RUNS: &[u8] = b"dray plan run";

/// What a part is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Share {
    /// All of a statement.
    Whole,
    /// Some of the partitions of the engine's plan.
    Portion(Portion),
    /// The part with this number of a plan of a source.
    OfSource(u32),
}

/// The name of a plan: random bytes.
pub(crate) type PlanId = [u8; ID_BYTES];

/// Makes tickets and passes, and checks them.
pub(crate) struct Tickets {
    key: hmac::Key,
    /// Names this run of the server, so that a restart can be told from an altered ticket.
    run: [u8; ID_BYTES],
    /// Whether the key comes from a secret that other servers have, too.
    is_shared: bool,
    started: Instant,
    /// The wall clock when the server started. Later changes of that clock change no lease.
    started_us: u64,
}

/// A plan, and when its lease ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) plan: PlanId,
    /// Microseconds since 1970-01-01 UTC.
    pub(crate) deadline_us: u64,
}

impl Tickets {
    /// # Errors
    /// If the system gives no random bytes.
    pub(crate) fn new() -> Result<Self, ring::error::Unspecified> {
        let random = SystemRandom::new();
        let mut run = [0; ID_BYTES];
        random.fill(&mut run)?;
        Ok(Self::with_key(hmac::Key::generate(hmac::HMAC_SHA256, &random)?, run, false))
    }

    /// Tickets that all servers with this secret accept which serve the same.
    pub(crate) fn shared(secret: &Secret, served: &Fingerprint) -> Self {
        let secret = hmac::Key::new(hmac::HMAC_SHA256, secret.reveal().as_bytes());
        let key = hmac::sign(&secret, OF_KEYS);
        let name = hmac::sign(&secret, &[OF_RUNS, &served.0[..]].concat());
        let mut run = [0; ID_BYTES];
        run.iter_mut().zip(name.as_ref()).for_each(|(to, from)| *to = *from);
        Self::with_key(hmac::Key::new(hmac::HMAC_SHA256, key.as_ref()), run, true)
    }

    fn with_key(key: hmac::Key, run: [u8; ID_BYTES], is_shared: bool) -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let started_us = micros(since_epoch);
        Self { key, run, is_shared, started: Instant::now(), started_us }
    }

    fn now_us(&self) -> u64 {
        self.started_us.saturating_add(micros(self.started.elapsed()))
    }

    /// A new plan, whose parts can be read for this time.
    pub(crate) fn lease(&self, lease: Duration) -> Result<Lease, ServerError> {
        check_lease(lease)?;
        let mut plan = [0; ID_BYTES];
        SystemRandom::new().fill(&mut plan).map_err(|_| {
            error(ErrorKind::Resources, "53000", "the system gives no random bytes", "")
        })?;
        Ok(Lease { plan, deadline_us: self.now_us().saturating_add(micros(lease)) })
    }

    /// The token of connections that may read the plan's parts and nothing else.
    pub(crate) fn pass(&self, lease: &Lease) -> Secret {
        let bytes = self.signed(self.start(lease), OF_PASSES, &[]);
        let digits = bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        format!("{PASS_PREFIX}{digits}").into()
    }

    /// The plan whose parts a pass lets be read.
    pub(crate) fn admit(&self, pass: &str) -> Result<PlanId, ServerError> {
        let bytes = pass.strip_prefix(PASS_PREFIX).and_then(from_digits);
        let bytes = bytes.filter(|bytes| bytes.len() == START_BYTES + SHA256_OUTPUT_LEN);
        let bytes = bytes.ok_or_else(|| forged("pass"))?;
        Ok(self.opened(&bytes, "pass", OF_PASSES, &[])?.0.plan)
    }

    /// What lets a part be read.
    pub(crate) fn ticket(&self, lease: &Lease, share: &Share, query: &Query) -> Vec<u8> {
        let (numbers, digest) = match share {
            Share::Whole => (WHOLE, [0; SHA256_OUTPUT_LEN]),
            Share::Portion(Portion { target, partitions, digest }) => {
                debug_assert!(partitions.start < partitions.end, "a part has partitions");
                ([*target, partitions.start, partitions.end], *digest)
            }
            Share::OfSource(index) => ([*index, OF_SOURCE, OF_SOURCE], [0; SHA256_OUTPUT_LEN]),
        };
        let mut bytes = self.start(lease);
        for number in numbers {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&digest);
        self.signed(bytes, OF_TICKETS, &statement(query))
    }

    /// The plan and the part that a ticket is for.
    ///
    /// # Errors
    /// If the ticket is not of this run of the server, was changed, is for another statement, or
    /// its plan's lease is over.
    pub(crate) fn open(
        &self,
        ticket: &[u8],
        query: &Query,
    ) -> Result<(PlanId, Share), ServerError> {
        if ticket.len() != START_BYTES + PORTION_BYTES + SHA256_OUTPUT_LEN {
            return Err(forged("ticket"));
        }
        let (lease, rest) = self.opened(ticket, "ticket", OF_TICKETS, &statement(query))?;
        let (numbers, digest) = rest.split_at(PORTION_BYTES - SHA256_OUTPUT_LEN);
        let (numbers, _) = numbers.as_chunks::<4>();
        let ([target, from, to], Ok(digest)) =
            (numbers, <[u8; SHA256_OUTPUT_LEN]>::try_from(digest))
        else {
            return Err(forged("ticket"));
        };
        let numbers @ [target, from, to] = [target, from, to].map(|raw| u32::from_le_bytes(*raw));
        let share = match from < to {
            true => Share::Portion(Portion { target, partitions: from..to, digest }),
            false if numbers == WHOLE => Share::Whole,
            false => Share::OfSource(target),
        };
        Ok((lease.plan, share))
    }

    fn start(&self, lease: &Lease) -> Vec<u8> {
        let mut bytes = self.run.to_vec();
        bytes.extend_from_slice(&lease.plan);
        bytes.extend_from_slice(&lease.deadline_us.to_le_bytes());
        bytes
    }

    fn signed(&self, mut bytes: Vec<u8>, purpose: &[u8], statement: &[u8]) -> Vec<u8> {
        let tag = hmac::sign(&self.key, &[purpose, statement, &bytes].concat());
        bytes.extend_from_slice(tag.as_ref());
        bytes
    }

    /// The lease of a ticket or pass, and what is between it and the keyed digest.
    fn opened<'a>(
        &self,
        bytes: &'a [u8],
        what: &str,
        purpose: &[u8],
        statement: &[u8],
    ) -> Result<(Lease, &'a [u8]), ServerError> {
        let (body, tag) = bytes.split_at(bytes.len() - SHA256_OUTPUT_LEN);
        let (start, rest) = body.split_at(START_BYTES);
        if start[..ID_BYTES] != self.run {
            let why = match self.is_shared {
                false => format!(
                    "the {what} is of another run of the server: the server has restarted since \
                     the plan was made, or this is another one"
                ),
                true => format!(
                    "the {what} is of a server that has another secret, or serves other files or \
                     other versions of them"
                ),
            };
            return Err(error(ErrorKind::Execution, "55000", why, "make a new plan"));
        }
        // In constant time.
        let signed = [purpose, statement, body].concat();
        hmac::verify(&self.key, &signed, tag).map_err(|_| forged(what))?;
        let mut lease = Lease { plan: [0; ID_BYTES], deadline_us: 0 };
        lease.plan.copy_from_slice(&start[ID_BYTES..2 * ID_BYTES]);
        let deadline = start.last_chunk().map_or(0, |raw| u64::from_le_bytes(*raw));
        let now = self.now_us();
        if now >= deadline {
            let late = Duration::from_micros(now - deadline).as_secs();
            let why = format!("the plan's lease ended {late} s ago");
            return Err(error(ErrorKind::Execution, "55000", why, "make a new plan"));
        }
        lease.deadline_us = deadline;
        Ok((lease, rest))
    }
}

/// Checks the length of a lease that a client asks for.
pub(crate) fn check_lease(lease: Duration) -> Result<(), ServerError> {
    if lease.is_zero() || lease > LEASE_MAX {
        let what = format!("a lease of {lease:?}, expected more, and at most a day");
        return Err(error(ErrorKind::Query, "22023", what, ""));
    }
    Ok(())
}

/// What a ticket is bound to.
fn statement(query: &Query) -> Vec<u8> {
    let sql = ring::digest::digest(&SHA256, query.sql.as_bytes());
    let parameters = ring::digest::digest(&SHA256, &query.parameters);
    [sql.as_ref(), parameters.as_ref()].concat()
}

fn forged(what: &str) -> ServerError {
    let why = match what {
        "pass" => "the pass was changed after the server made it",
        _ => "the ticket was changed after the server made it, or is for another statement",
    };
    let hint = "hand over the descriptor's bytes as the plan has them";
    error(ErrorKind::Authentication, "28000", why, hint)
}

fn from_digits(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use dray_format::Limits;
    use dray_wire::{Checksums, CompressionChoice};

    use super::*;

    fn query(sql: &str, parameters: &[u8]) -> Query {
        Query {
            statement: 1,
            sql: sql.into(),
            parameters: parameters.into(),
            limits: Limits::default(),
            chunk_rows: 0,
            compression: CompressionChoice::Auto,
            checksums: Checksums::Auto,
            plan_only: false,
            layout: dray_wire::RowLayout::Chunks,
            estimate: false,
            unfit: dray_wire::Unfit::Error,
        }
    }

    fn flips(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
        (0..8 * bytes.len()).map(|bit| {
            let mut bytes = bytes.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            bytes
        })
    }

    #[test]
    fn a_ticket_is_for_its_statement_and_part_alone() {
        let tickets = Tickets::new().unwrap();
        let lease = tickets.lease(Duration::from_secs(60)).unwrap();
        let portion = Portion { target: 4, partitions: 1..3, digest: [9; 32] };
        let asked = query("SELECT $1", b"x");
        let of_source = [0, 7].map(Share::OfSource);
        for share in [Share::Portion(portion), Share::Whole].into_iter().chain(of_source) {
            let ticket = tickets.ticket(&lease, &share, &asked);
            let opened = tickets.open(&ticket, &asked).unwrap();
            assert_eq!(opened, (lease.plan, share));
            for changed in flips(&ticket) {
                assert!(tickets.open(&changed, &asked).is_err());
            }
            for bytes in [&ticket[1..], &ticket[..ticket.len() - 1], &[][..]] {
                assert!(tickets.open(bytes, &asked).is_err());
            }
            // Bytes don't move from the statement to its parameters.
            for other in [query("SELECT $1x", b""), query("SELECT $1", b"y"), query("SELECT", b"")]
            {
                let error = tickets.open(&ticket, &other).unwrap_err();
                assert!(error.message.contains("for another statement"), "{}", error.message);
            }
            let error = Tickets::new().unwrap().open(&ticket, &asked).unwrap_err();
            assert!(error.message.contains("has restarted"), "{}", error.message);
            assert!(tickets.admit(&format!("{PASS_PREFIX}{:02x?}", ticket)).is_err());
        }
    }

    #[test]
    fn a_pass_is_for_its_plan_alone() {
        let tickets = Tickets::new().unwrap();
        let lease = tickets.lease(Duration::from_secs(60)).unwrap();
        let pass = tickets.pass(&lease);
        assert_eq!(tickets.admit(pass.reveal()).unwrap(), lease.plan);
        let bytes = from_digits(&pass.reveal()[PASS_PREFIX.len()..]).unwrap();
        for changed in flips(&bytes) {
            let digits = changed.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            assert!(tickets.admit(&format!("{PASS_PREFIX}{digits}")).is_err());
        }
        for other in ["pass-", "pass-0", "pass-zz", "pass-\u{e9}", "secret", &pass.reveal()[1..]] {
            assert!(tickets.admit(other).is_err());
        }
    }

    #[test]
    fn servers_with_a_secret_are_one_run_if_they_serve_the_same() {
        let asked = query("SELECT 1", b"");
        let served = |byte| Fingerprint([byte; 32]);
        let first = Tickets::shared(&"secret".to_owned().into(), &served(1));
        let lease = first.lease(Duration::from_secs(60)).unwrap();
        let (ticket, pass) = (first.ticket(&lease, &Share::Whole, &asked), first.pass(&lease));
        let second = Tickets::shared(&"secret".to_owned().into(), &served(1));
        assert_eq!(second.open(&ticket, &asked).unwrap(), (lease.plan, Share::Whole));
        assert_eq!(second.admit(pass.reveal()).unwrap(), lease.plan);
        for other in [
            Tickets::shared(&"secret".to_owned().into(), &served(2)),
            Tickets::shared(&"other".to_owned().into(), &served(1)),
        ] {
            let error = other.open(&ticket, &asked).unwrap_err();
            assert!(error.message.contains("other versions of them"), "{}", error.message);
            assert!(other.admit(pass.reveal()).is_err());
        }
        assert!(Tickets::new().unwrap().open(&ticket, &asked).is_err());
        assert!(
            second
                .open(&Tickets::new().unwrap().ticket(&lease, &Share::Whole, &asked), &asked)
                .is_err()
        );
    }

    #[test]
    fn the_lease_ends() {
        let tickets = Tickets::new().unwrap();
        let lease = tickets.lease(Duration::from_millis(1)).unwrap();
        let ticket = tickets.ticket(&lease, &Share::Whole, &query("SELECT 1", b""));
        std::thread::sleep(Duration::from_millis(5));
        let error = tickets.open(&ticket, &query("SELECT 1", b"")).unwrap_err();
        assert_eq!(error.message, "the plan's lease ended 0 s ago");
        assert!(tickets.admit(tickets.pass(&lease).reveal()).is_err());
        for wrong in [Duration::ZERO, Duration::from_secs(90_000)] {
            assert!(tickets.lease(wrong).is_err());
        }
    }
}
