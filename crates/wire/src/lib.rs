//! dray-wire
