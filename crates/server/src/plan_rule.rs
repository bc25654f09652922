//! A physical optimizer rule that replaces operators.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

type Plan = Arc<dyn ExecutionPlan>;

/// Visits a plan from its leaves to its root.
#[derive(Debug)]
pub(crate) struct PlanRule {
    pub(crate) name: &'static str,
    /// The replacement of an operator, if there is one.
    pub(crate) replace: fn(&Plan) -> Result<Option<Plan>>,
}

impl PhysicalOptimizerRule for PlanRule {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        let replace = |plan| {
            Ok((self.replace)(&plan)?.map_or_else(|| Transformed::no(plan), Transformed::yes))
        };
        plan.transform_up(replace).data()
    }

    fn name(&self) -> &str {
        self.name
    }

    fn schema_check(&self) -> bool {
        true
    }
}
