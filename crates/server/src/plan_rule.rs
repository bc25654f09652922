//! A rule of the engine's optimizer that puts other operators in the place of some.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

type Plan = Arc<dyn ExecutionPlan>;

/// Goes through a plan from its leaves to its root.
#[derive(Debug)]
pub(crate) struct PlanRule {
    pub(crate) name: &'static str,
    /// What is to be in the place of an operator, if it is not to stay.
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
