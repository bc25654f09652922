//! dray-server

pub mod catalog;
pub mod tpch;
