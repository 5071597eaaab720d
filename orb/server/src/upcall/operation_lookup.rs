//! The search for the operation of a request in its servant's table: by prediction, by the client's index, by
//! name.
//!
//! The adapter finds objects; `handle_locate_request` of the parent module answers LocateRequests.

use spandrel_demux::{OperationDemux, Operations};
use spandrel_giop::{ServiceContexts, ids};

use super::{call::ServerCall, prediction::Prediction, received_request::ReceivedRequest};
use crate::LastTarget;

impl ServerCall<'_> {
    /// The index of the operation, in the table of the servant.
    #[inline]
    pub(crate) fn look_up(&self, operations: &Operations, how: OperationDemux) -> Option<usize> {
        let name = self.operation();
        let prediction = self.origin().prediction();
        if let Some(predicted) = prediction.map(Prediction::operation)
            && operations.is_named(predicted, name)
        {
            return Some(predicted);
        }
        let contexts = &self.header().service_contexts;
        let named = if contexts.is_empty() { None } else { by_index(operations, name, contexts) };
        let operation = named.or_else(|| operations.find(name, how))?;
        if let Some(prediction) = prediction {
            prediction.set_operation(operation);
        }
        Some(operation)
    }
}

impl LastTarget for ReceivedRequest<'_> {
    fn predicted_target(&self) -> Option<u64> {
        self.origin.prediction()?.target()
    }

    fn record_target(&self, place: u64) {
        if let Some(prediction) = self.origin.prediction() {
            prediction.set_target(place);
        }
    }
}

/// The operation at the place in the table that the client has sent (design decision 11), if it has this
/// name.
fn by_index(operations: &Operations, name: &str, contexts: &ServiceContexts<'_>) -> Option<usize> {
    let &[order, _, one, other] = contexts.find(ids::CONTEXT_OPERATION_INDEX)? else { return None };
    let index = if order & 1 == 0 { u16::from_be_bytes([one, other]) } else { u16::from_le_bytes([one, other]) };
    operations.at_place(index.into(), name)
}

#[cfg(test)]
mod tests {
    use spandrel_giop::ServiceContext;

    use super::*;

    static OPERATIONS: Operations = Operations::new(&["deposit"], 0, &[0; 4]);

    fn found(name: &str, data: &[u8]) -> Option<usize> {
        let contexts = [ServiceContext { id: ids::CONTEXT_OPERATION_INDEX, data: data.to_vec() }];
        by_index(&OPERATIONS, name, &contexts.as_slice().into())
    }

    #[test]
    fn an_operation_index_counts_only_with_a_matching_name() {
        assert_eq!(found("deposit", &[0, 0, 0, 0]), Some(0));
        assert_eq!(found("deposit", &[1, 0xff, 0, 0]), Some(0), "padding means nothing");
        for hostile in [&[][..], &[0], &[0, 0, 0], &[0, 0, 0, 0, 0], &[0, 0, 0, 1], &[1, 0, 1, 0], &[0, 0, 0xff, 0xff]]
        {
            assert_eq!(found("deposit", hostile), None, "{hostile:?}");
        }
        assert_eq!(found("withdraw", &[0, 0, 0, 0]), None);
        assert_eq!(by_index(&OPERATIONS, "deposit", &ServiceContexts::NONE), None);
    }
}
