//! dray-format
