//! dray
fn main() {}
