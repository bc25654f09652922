//! dray-client
