//! Our stubs with a channel of another event service (`SPANDREL_EVENT_CHANNEL`: its URL), or with ours.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use spandrel::services::cos_event_channel_admin::EventChannel;
use spandrel::services::cos_event_channel_admin::proxy_pull_consumer::ConnectPullSupplierError;
use spandrel::services::cos_event_channel_admin::proxy_pull_supplier::ConnectPullConsumerError;
use spandrel::services::cos_event_channel_admin::proxy_push_consumer::ConnectPushSupplierError;
use spandrel::services::cos_event_channel_admin::proxy_push_supplier::ConnectPushConsumerError;
use spandrel::services::cos_event_comm::PullSupplierSkeleton;
use spandrel::services::cos_event_comm::pull_supplier::TryPullError;
use spandrel::services::cos_event_comm::push_consumer::PushError;
use spandrel::{Poa, SystemExceptionKind};
use spandrel_test_support::{raises, wait_until};

use crate::channels::Peer;
use crate::support::{Served, consumers, long, suppliers};

/// The channel of the environment, once its service has bound it, or one of ours.
fn channel(served: &Served) -> EventChannel {
    let Ok(url) = std::env::var("SPANDREL_EVENT_CHANNEL") else { return served.channel("any") };
    let mut channel = None;
    wait_until("the channel", || {
        let object = served.client.string_to_object(&url).ok();
        channel = object.and_then(|object| object.narrow::<EventChannel>().ok());
        channel.is_some()
    });
    channel.unwrap()
}

#[test]
fn a_channel_of_any_orb_passes_events_in_each_model_and_raises_the_exceptions() {
    let served = Served::transient();
    let channel = channel(&served);
    let pushes = suppliers(&channel).obtain_push_consumer().unwrap().unwrap();
    raises!(PushError::Disconnected, pushes.push(&long(0)));
    pushes.connect_push_supplier(None).unwrap();
    raises!(ConnectPushSupplierError::AlreadyConnected, pushes.connect_push_supplier(None));
    let pulled = consumers(&channel).obtain_pull_supplier().unwrap().unwrap();
    raises!(TryPullError::Disconnected, pulled.try_pull());
    pulled.connect_pull_consumer(None).unwrap();
    raises!(ConnectPullConsumerError::AlreadyConnected, pulled.connect_pull_consumer(None));
    let (recorder, consumer) = served.consumer();
    let pushed = consumers(&channel).obtain_push_supplier().unwrap().unwrap();
    match pushed.connect_push_consumer(None) {
        Err(ConnectPushConsumerError::System(error)) => assert_eq!(error.kind(), SystemExceptionKind::BadParam),
        other => panic!("{other:?}"),
    }
    pushed.connect_push_consumer(Some(&consumer)).unwrap();
    raises!(ConnectPushConsumerError::AlreadyConnected, pushed.connect_push_consumer(Some(&consumer)));
    (1..=3).for_each(|number| pushes.push(&long(number)).unwrap());
    recorder.wait_for(&[1, 2, 3]);
    let numbers = [(); 3].map(|()| pulled.pull().unwrap().extract::<i32>().unwrap());
    assert_eq!((numbers, pulled.try_pull().unwrap().1), ([1, 2, 3], false));

    let peer = Arc::new(Peer::with([4, 5]));
    let object = Poa::root(&served.client).unwrap().activate(PullSupplierSkeleton::new(Arc::clone(&peer))).unwrap();
    let pulls = suppliers(&channel).obtain_pull_consumer().unwrap().unwrap();
    pulls.connect_pull_supplier(Some(&object.unchecked_narrow())).unwrap();
    let again = pulls.connect_pull_supplier(Some(&object.unchecked_narrow()));
    raises!(ConnectPullSupplierError::AlreadyConnected, again);
    recorder.wait_for(&[1, 2, 3, 4, 5]);
    pulls.disconnect_pull_consumer().unwrap();
    peer.wait_for_disconnection();
    pushed.disconnect_push_supplier().unwrap();
    wait_until("a disconnection", || recorder.disconnections.load(Ordering::SeqCst) == 1);
    pushes.disconnect_push_consumer().unwrap();
    match pushes.push(&long(6)) {
        Err(PushError::Disconnected(_)) => {}
        Err(PushError::System(error)) => assert_eq!(error.kind(), SystemExceptionKind::ObjectNotExist),
        Ok(()) => panic!("the proxy is disconnected"),
    }
    // JacORB's channel raises OBJ_ADAPTER there.
    let destroyed = channel.destroy();
    assert!(destroyed.is_ok() || std::env::var_os("SPANDREL_EVENT_CHANNEL").is_some(), "{destroyed:?}");
}
