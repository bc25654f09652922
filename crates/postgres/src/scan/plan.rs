//! Plans as EXPLAIN prints them.

/// Whether a plan is one Tid Range Scan, or one after the other for the leaves of a partitioned
/// table.
pub fn is_tid_range_scan(plan: &[String]) -> bool {
    let nodes: Vec<_> =
        plan.iter().filter(|line| line.contains("(cost=")).map(|line| line.trim_start()).collect();
    let is_scan =
        |node: &&str| node.trim_start_matches("->").trim_start().starts_with("Tid Range Scan on ");
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
}
