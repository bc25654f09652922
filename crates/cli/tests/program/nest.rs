//! `dray nest`, interrupted. `crates/nest` and Python test what it makes.

use crate::{ENDLESS, Fixture, Running};

#[test]
fn an_interrupt_leaves_nothing() {
    let fixture = Fixture::start();
    let paths = ["spec.toml", "out.parquet", "spill"].map(|name| fixture.path(name));
    let [spec, out, spill] = paths.each_ref().map(|path| path.to_str().unwrap());
    std::fs::create_dir(spill).unwrap();
    let many = "SELECT value, 0 - value AS less FROM generate_series(1, 3000000)";
    // While a statement runs, and while the rows of all statements are sorted and merged.
    for (sql, metric, value) in
        [(ENDLESS, "dray_chunks_sent_total", 5), (many, "dray_statements_total", 3)]
    {
        let text = format!(
            "sql = \"{sql}\"\norder = [\"value:desc\"]\n[many.others]\nsql = \"{many}\"\n\
             on = {{ less = \"value\" }}\norphans = \"drop\""
        );
        std::fs::write(spec, text).unwrap();
        let arguments = ["nest", &fixture.uri, spec, "-o", out, "--memory", "8MiB"];
        let running = Running::start(&[&arguments[..], &["--spill", spill]].concat());
        fixture.wait_for_metric(metric, value);
        running.interrupt();
        assert_eq!(running.wait(), (Some(130), "dray: interrupted\n".to_owned()), "{sql}");
        assert_eq!(fixture.leftovers(), Vec::<String>::new(), "{sql}");
        assert_eq!(std::fs::read_dir(spill).unwrap().count(), 0, "{sql}");
        assert!(!paths[1].exists());
    }
}
