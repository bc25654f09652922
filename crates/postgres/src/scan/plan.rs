//! Plans as EXPLAIN prints them.

/// Nodes with one input that group its rows, in one process.
const GROUPING: &[&str] = &["Aggregate ", "GroupAggregate ", "HashAggregate ", "Group "];
/// The node that orders its input for some of them.
const SORT: &str = "Sort ";

/// Whether a plan is one Tid Range Scan, or one after the other for the leaves of a partitioned
/// table.
pub(super) fn is_tid_range_scan(plan: &[String]) -> bool {
    is_scan(&nodes(plan))
}

/// Whether a plan groups the rows of such a scan, and does nothing else.
pub(super) fn is_tid_range_aggregate(plan: &[String]) -> bool {
    let nodes = nodes(plan);
    let groups = |node: &str| GROUPING.iter().any(|name| node.starts_with(name));
    let inputs = nodes.iter().position(|node| !groups(node) && !node.starts_with(SORT));
    let (above, scan) = nodes.split_at(inputs.unwrap_or(nodes.len()));
    above.first().is_some_and(|root| groups(root)) && is_scan(scan)
}

/// The plan's nodes, each before its inputs, as they are named.
fn nodes(plan: &[String]) -> Vec<&str> {
    let lines = plan.iter().filter(|line| line.contains("(cost="));
    lines.map(|line| line.trim_start().trim_start_matches("->").trim_start()).collect()
}

fn is_scan(nodes: &[&str]) -> bool {
    let is_scan = |node: &&str| node.starts_with("Tid Range Scan on ");
    match nodes.split_first() {
        Some((root, [])) => is_scan(root),
        Some((root, rest)) => root.starts_with("Append ") && rest.iter().all(is_scan),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans() {
        let plan = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        let scan = "Tid Range Scan on t  (cost=0.01..2.0 rows=1 width=4)";
        let filter = "  TID Cond: (ctid >= '(0,0)'::tid)";
        assert!(is_tid_range_scan(&plan(&[scan, filter])));
        assert!(is_tid_range_scan(&plan(&[
            "Append  (cost=0.01..4.0 rows=2 width=4)",
            &format!("  ->  {scan}"),
            filter,
            &format!("  ->  {scan}")
        ])));
        assert!(!is_tid_range_scan(&plan(&["Seq Scan on t  (cost=0.00..1.0 rows=1 width=4)"])));
        assert!(!is_tid_range_scan(&plan(&[
            "Aggregate  (cost=0.00..1.0 rows=1 width=4)",
            &format!("  ->  {scan}")
        ])));
        assert!(!is_tid_range_scan(&[]));
    }

    #[test]
    fn plans_of_aggregates() {
        let plan = |names: &[&str]| {
            let line = |name: &&str| format!("   ->  {name}  (cost=0.00..1.0 rows=1 width=4)");
            names.iter().map(line).collect::<Vec<_>>()
        };
        let scan = "Tid Range Scan on t";
        for names in [
            &["Aggregate", scan][..],
            &["HashAggregate", scan],
            &["Group", "Sort", scan],
            &["GroupAggregate", "Sort", "Append", scan, scan],
        ] {
            assert!(is_tid_range_aggregate(&plan(names)), "{names:?}");
            assert!(!is_tid_range_scan(&plan(names)), "{names:?}");
        }
        for names in [
            &[][..],
            &[scan],
            &["Sort", scan],
            &["Sort", "HashAggregate", scan],
            &["Limit", "Aggregate", scan],
            &["Aggregate", "Seq Scan on t"],
            &["Aggregate", scan, "Seq Scan on u"],
            &["Aggregate", scan, "Tid Range Scan on u"],
            &["Aggregate"],
            &["WindowAgg", "Aggregate", scan],
            &["MixedAggregate", scan],
            &["Finalize Aggregate", "Append", "Partial Aggregate", scan],
            &["Append", "HashAggregate", scan, "HashAggregate", scan],
        ] {
            assert!(!is_tid_range_aggregate(&plan(names)), "{names:?}");
        }
    }
}
