//! What a server serves, as a digest: two servers with the same one give the same rows.

use std::fs;

use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN};

use super::CatalogOptions;
use super::sources::Source;

/// Names the tables of a server, the versions of their files, and how they are read. It is in the
/// configuration of the session.
pub(crate) struct Fingerprint(pub(crate) [u8; SHA256_OUTPUT_LEN]);

impl Fingerprint {
    pub(super) fn new(options: &CatalogOptions, sources: &[Source]) -> Self {
        let CatalogOptions { tpch_scale, in_memory, csv_no_header, union_by_name, .. } = options;
        let mut context = Context::new(&SHA256);
        let mut add = |text: &str| {
            context.update(&(text.len() as u64).to_le_bytes());
            context.update(text.as_bytes());
        };
        add(env!("CARGO_PKG_VERSION"));
        add(&format!("{tpch_scale:?} {in_memory} {csv_no_header} {union_by_name}"));
        let mut sources = sources.iter().collect::<Vec<_>>();
        sources.sort_by(|a, b| a.name.cmp(&b.name));
        for Source { name, kind, files, partitions, .. } in sources {
            add(name);
            add(&format!("{kind:?} {:?} {}", partitions.columns, files.len()));
            for file in files {
                add(&file.name);
                add(&format!("{} {}", file.bytes(), file.version()));
                if file.object().is_none() {
                    add(&host());
                }
            }
        }
        let mut digest = [0; SHA256_OUTPUT_LEN];
        digest.copy_from_slice(context.finish().as_ref());
        Self(digest)
    }
}

/// Names this host since its start. Elsewhere the numbers of a local file may mean another one.
fn host() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .unwrap_or_else(|_| format!("process {}", std::process::id()))
}
