//! Who may use which source.

use std::collections::BTreeMap;
use std::sync::Arc;

use dray_wire::{ErrorKind, Secret, ServerError, is_source_name};

use crate::engine;
use crate::options::{ServeError, ServeOptions};
use crate::relay::Relay;
use crate::tickets::PlanId;

/// The name of the server's own tables.
pub(crate) const FILES: &str = "files";

/// The sources, and the tokens that open them.
pub(crate) struct Grants {
    sources: BTreeMap<String, Arc<Relay>>,
    has_files: bool,
    /// Opens everything.
    token: Option<Secret>,
    /// Tokens that open some sources.
    grants: Vec<(Secret, Vec<String>)>,
}

/// What a token opens.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Opens<'a> {
    Everything,
    These(&'a [String]),
}

impl Grants {
    /// # Errors
    /// If a name is malformed, unknown or used twice, or two grants have the same token.
    pub(crate) fn new(options: &ServeOptions, has_files: bool) -> Result<Self, ServeError> {
        let mut sources = BTreeMap::new();
        for source in &options.sources {
            let name = &source.name;
            if !is_source_name(name) || name == FILES {
                return Err(ServeError::new(format!(
                    "a source can't have the name {name:?}: expected letters, digits, _ and -, \
                     and not {FILES}, which stands for the server's own tables"
                )));
            }
            if sources.insert(name.clone(), Arc::new(Relay::new(source))).is_some() {
                return Err(ServeError::new(format!("two sources have the name {name}")));
            }
        }
        let mut grants: Vec<(Secret, Vec<String>)> = Vec::new();
        for grant in &options.grants {
            let unknown =
                grant.sources.iter().find(|name| *name != FILES && !sources.contains_key(*name));
            if let Some(name) = unknown {
                return Err(ServeError::new(format!(
                    "a grant names the source {name}, which the server does not have"
                )));
            }
            let known = options.token.iter().chain(grants.iter().map(|(token, _)| token));
            if known.into_iter().any(|token| *token == grant.token) {
                return Err(ServeError::new(
                    "two grants have the same token; name all of its sources in one",
                ));
            }
            grants.push((grant.token.clone(), grant.sources.clone()));
        }
        Ok(Self { sources, has_files, token: options.token.clone(), grants })
    }

    /// All sources.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &Arc<Relay>> {
        self.sources.values()
    }

    /// Whether a client waits for a session of a source.
    pub(crate) fn has_waiting(&self) -> bool {
        self.sources().any(|relay| relay.has_waiting())
    }

    /// Whether clients must send a token.
    pub(crate) fn requires_token(&self) -> bool {
        self.token.is_some() || !self.grants.is_empty()
    }

    /// What a token opens; None if it is wrong. All tokens are compared, each in constant time.
    pub(crate) fn opened_by(&self, token: &Secret) -> Option<Opens<'_>> {
        if !self.requires_token() {
            return Some(Opens::Everything);
        }
        let is_equal = |own: &Secret| {
            equal_in_constant_time(own.reveal().as_bytes(), token.reveal().as_bytes())
        };
        let mut opens = self.token.as_ref().filter(|own| is_equal(own)).map(|_| Opens::Everything);
        for (own, names) in &self.grants {
            if is_equal(own) {
                opens = Some(Opens::These(names));
            }
        }
        opens
    }

    /// The source of this name for a client that may only read the parts of a plan.
    ///
    /// # Errors
    /// If the plan is not one of this source, nor of the server's own tables.
    pub(crate) fn source_of_plan(
        &self,
        name: &str,
        plan: PlanId,
    ) -> Result<Option<Arc<Relay>>, ServerError> {
        if name.is_empty() || name == FILES {
            return self.source(name, Opens::These(&[FILES.to_owned()]));
        }
        let relay = self.sources.get(name).filter(|relay| relay.held(plan).is_some());
        // Whether there is such a source, a pass does not tell.
        let released = || {
            let what = format!("the server holds no plan of this pass for {name}");
            let hint = "it was released, or its server has started anew: make a new plan";
            engine::error(ErrorKind::Authentication, "55000", what, hint)
        };
        relay.cloned().map(Some).ok_or_else(released)
    }

    /// The source of this name; None for the server's own tables, which also have no name.
    ///
    /// # Errors
    /// If there is no such source, or it is not among `opens`. Both look the same.
    pub(crate) fn source(
        &self,
        name: &str,
        opens: Opens<'_>,
    ) -> Result<Option<Arc<Relay>>, ServerError> {
        let is_open = |name: &str| match opens {
            Opens::Everything => true,
            Opens::These(names) => names.iter().any(|open| open == name),
        };
        let named = if name.is_empty() { FILES } else { name };
        match self.sources.get(named) {
            Some(relay) if is_open(named) => return Ok(Some(relay.clone())),
            None if named == FILES && self.has_files && is_open(FILES) => return Ok(None),
            _ => {}
        }
        let files = Some(FILES).filter(|_| self.has_files);
        let all = files.into_iter().chain(self.sources.keys().map(String::as_str));
        let open = all.filter(|name| is_open(name)).collect::<Vec<_>>().join(", ");
        let message = match named {
            FILES => "the server has no tables of its own that you may use".to_owned(),
            name => format!("there is no source {name} that you may use"),
        };
        let hint = match open.as_str() {
            "" => "there is nothing that this token opens".to_owned(),
            open => format!("you may use {open}, as in dray://host/NAME"),
        };
        Err(engine::error(ErrorKind::Authentication, "3D000", message, &hint))
    }
}

/// Compares secrets in a time that does not depend on where they differ.
fn equal_in_constant_time(a: &[u8], b: &[u8]) -> bool {
    let differences = a.iter().zip(b).fold(0, |differences, (a, b)| differences | (a ^ b));
    std::hint::black_box(differences) == 0 && a.len() == b.len()
}
