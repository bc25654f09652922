//! dray-server
