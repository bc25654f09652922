//! Plans of parts at a Dray server (protocol.md section 12). The server keeps nothing of a plan of
//! its own tables. What it holds for a plan of a source, the client tells it to release.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dray_format::arrow::schema_to_arrow;
use dray_wire::partition::{DrayPart, PartDescriptor, PartSource, RandomId};
use dray_wire::{PlanRequest, Planned, Secret, ServerEvent};

use super::{DraySource, Uri, check_options, encode_parameters, finish_message};
use crate::error::{Error, ErrorKind, Result};
use crate::memory::Arena;
use crate::options::{ConnectOptions, QueryOptions};
use crate::partition::PlanOptions;
use crate::source::frames::Frame;
use crate::source::{Holder, PlannedParts, Source, cancelled, out_of_turn};
use crate::watch::{CancelCheck, Verdict};

/// How long a server is waited for when a plan is released. Otherwise its lease ends.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// Tells a server to release a plan of a source.
#[derive(Debug)]
struct PlanHolder {
    uri: String,
    /// With the plan's pass.
    options: ConnectOptions,
    /// The process that planned. A fork of it holds nothing.
    process: u32,
}

impl Holder for PlanHolder {}

impl Drop for PlanHolder {
    fn drop(&mut self) {
        if std::process::id() != self.process {
            return;
        }
        let until = Instant::now() + self.options.timeout;
        let mut keep_waiting = || Instant::now() < until;
        // If the server is gone, so is the plan. If it is not reached, the lease ends the plan.
        if let Ok(mut server) = DraySource::connect(&self.uri, &self.options, &mut keep_waiting) {
            let mut out = Vec::new();
            if server.session.release(&mut out).is_ok() {
                let late = || Error::new(ErrorKind::Connection, "the server does not read");
                let mut check = || if keep_waiting() { Ok(()) } else { Err(late()) };
                let _ = server.send(&out, &mut check);
            }
        }
    }
}

impl DraySource {
    /// Divides a statement into parts, over this connection.
    ///
    /// # Errors
    /// When the statement does not plan, or the server has no plans.
    pub(super) fn plan_statement(
        &mut self,
        sql: &str,
        query: &QueryOptions,
        plan: &PlanOptions,
        cancel: CancelCheck<'_>,
    ) -> Result<PlannedParts> {
        self.check_free()?;
        check_options(&query.postgres)?;
        let request = PlanRequest {
            statement: 0,
            sql: sql.to_owned(),
            parameters: encode_parameters(query.parameters.as_ref())?,
            parts_max: plan.at_most,
            lease_ms: u64::try_from(plan.lease.as_millis()).unwrap_or(u64::MAX),
        };
        let parameters = request.parameters.clone();
        let mut out = Vec::new();
        if let Some(part) = &plan.snapshot {
            let pass = self.pass_of(&part.0)?;
            self.session.share(pass, &mut out).map_err(|cause| Error::usage(cause.to_string()))?;
        }
        self.session.plan(request, &mut out).map_err(|cause| Error::usage(cause.to_string()))?;
        let mut deadline = None;
        self.send(&out, &mut || finish_message(cancel(), &mut deadline))?;
        let planned = match self.await_plan(cancel) {
            Ok(planned) => planned,
            Err(error) => {
                if self.is_running() {
                    self.stop(cancel);
                }
                return Err(error);
            }
        };
        let holder = self.is_relayed.then(|| self.holder(&planned.pass));
        Ok(PlannedParts {
            schema: Arc::new(schema_to_arrow(&planned.schema, query.strings)),
            reason: Some(planned.reason.clone()).filter(|reason| !reason.is_empty()),
            parts: self.describe(sql, &parameters, planned),
            holder,
        })
    }

    /// The pass of an earlier plan, whose snapshot another one is to have.
    ///
    /// # Errors
    /// Usage, if it can't be one of what this connection reads.
    fn pass_of<'a>(&self, part: &'a PartDescriptor) -> Result<&'a Secret> {
        let wrong = |what: &str| {
            Error::usage(what).with_hint("plans have one snapshot if they are made over one uri")
        };
        let PartSource::Dray(DrayPart { pass, .. }) = &part.source else {
            return Err(wrong("the earlier plan is of PostgreSQL, and this is a Dray server"));
        };
        let source = |uri: &str| uri.parse::<Uri>().ok().and_then(|uri| uri.source);
        match source(part.uri.reveal()) == source(&self.shared_uri) {
            true => Ok(pass),
            false => Err(wrong("the earlier plan is of another source of the Dray server")),
        }
    }

    fn holder(&self, pass: &Secret) -> Box<dyn Holder> {
        let options = self.options.clone();
        let timeout = options.timeout.min(RELEASE_TIMEOUT);
        Box::new(PlanHolder {
            uri: self.shared_uri.clone(),
            options: ConnectOptions { token: Some(pass.clone()), timeout, ..options },
            process: std::process::id(),
        })
    }

    fn await_plan(&mut self, cancel: CancelCheck<'_>) -> Result<Planned> {
        self.await_frame(&mut || match cancel() {
            Verdict::Continue => Ok(()),
            _ => Err(cancelled()),
        })?;
        let mut deadline = None;
        let mut check = || finish_message(cancel(), &mut deadline);
        match self.read_frame(&mut Arena::default(), &mut check)? {
            Frame::Message(ServerEvent::Planned(planned)) => Ok(planned),
            Frame::Message(ServerEvent::Error(error)) => Err(error.into()),
            _ => {
                self.broken = true;
                Err(out_of_turn())
            }
        }
    }

    /// Releases the plan in a frame that nobody waits for any longer.
    pub(super) fn give_up(&self, frame: &Frame) {
        if let Frame::Message(ServerEvent::Planned(planned)) = frame
            && self.is_relayed
        {
            drop(self.holder(&planned.pass));
        }
    }

    fn describe(&self, sql: &str, parameters: &[u8], planned: Planned) -> Vec<PartDescriptor> {
        let Planned { schema, plan, deadline_us, pass, parts, .. } = planned;
        // The session has bounded their number.
        let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        let parts = (0..count).zip(parts).map(|(index, part)| PartDescriptor {
            plan: RandomId(plan),
            index,
            count,
            deadline_us,
            rows: part.rows,
            bytes: part.bytes,
            has_password: false,
            uri: self.shared_uri.clone().into(),
            sql: sql.to_owned(),
            parameters: parameters.to_vec(),
            schema: (*schema).clone(),
            source: PartSource::Dray(DrayPart { pass: pass.clone(), ticket: part.ticket }),
        });
        parts.collect()
    }

    /// Lets the next statement be this part, and returns its text.
    ///
    /// # Errors
    /// Usage, if the part is of another kind of server, or the connection is not free.
    pub(super) fn open_part(&mut self, part: &PartDescriptor) -> Result<String> {
        self.check_free()?;
        let PartSource::Dray(DrayPart { ticket, .. }) = &part.source else {
            return Err(Error::usage("the part is of PostgreSQL, and this is a Dray server"));
        };
        self.ticket = Some(ticket.clone());
        Ok(part.sql.clone())
    }

    fn check_free(&self) -> Result<()> {
        match self.is_usable() {
            true => Ok(()),
            false => Err(Error::usage("the connection is busy or broken")
                .with_hint("read its result to the end, or connect again")),
        }
    }
}
