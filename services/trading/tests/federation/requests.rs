//! Ids of requests that return over links.

use spandrel_trading::federation::requests::RecentRequests;

#[test]
fn a_request_is_recognized_until_as_many_others_came() {
    let requests = RecentRequests::new(3);
    assert!(requests.record(b"a"));
    assert!(!requests.record(b"a"));
    assert!(requests.record(b"b") && requests.record(b"c"));
    assert!(!requests.record(b"a"));
    assert!(requests.record(b"d"));
    assert!(requests.record(b"a"), "the oldest is forgotten");
}

#[test]
fn own_requests_have_the_stem_and_are_recognized() {
    let requests = RecentRequests::new(10);
    let ids = [requests.begin(b"stem"), requests.begin(b"stem")];
    assert_ne!(ids[0], ids[1]);
    for id in &ids {
        assert!(id.starts_with(b"stem") && !requests.record(id));
    }
}
