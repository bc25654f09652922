//! dray-transfer
