//! Replies that wait until the client reads them.

use std::collections::HashMap;

use super::*;

/// A servant whose replies are as long as the request says. Each waits for a permit of its priority.
struct Long {
    sensor: Arc<Sensor>,
    permits: Mutex<HashMap<i16, usize>>,
    permitted: Condvar,
}

impl Long {
    fn permit(&self, priority: i16, count: usize) {
        *self.permits.lock().unwrap().entry(priority).or_default() += count;
        self.permitted.notify_all();
    }
}

impl Servant for Long {
    fn repository_id(&self) -> &str {
        "IDL:Long:1.0"
    }

    fn is_a(&self, _: &str) -> bool {
        true
    }

    fn dispatch(&self, operation: &str, mut call: ServerCall<'_>) -> Result<Replied, SystemException> {
        let text = "x".repeat(call.arguments()?.str()?.parse().unwrap());
        let priority = self.sensor.current.the_priority()?.get();
        self.sensor.record(operation);
        let waits = |permits: &mut HashMap<i16, usize>| permits.get(&priority).is_none_or(|count| *count == 0);
        let mut permits = self.permitted.wait_while(self.permits.lock().unwrap(), waits).unwrap();
        *permits.get_mut(&priority).unwrap() -= 1;
        drop(permits);
        call.reply(|out| out.str(&text))
    }
}

#[test]
fn the_most_urgent_reply_that_has_not_begun_leaves_first() {
    let lanes = PoolSettings::with_lanes(vec![lane(10, 1), lane(100, 1), lane(1_000, 1)]);
    let server = Server::new(PoolSettings { buffering: Some((0, 0)), ..lanes });
    let sensor = Arc::clone(&server.sensor);
    let long = Arc::new(Long { sensor, permits: Mutex::default(), permitted: Condvar::new() });
    server.poa.activate_object_with_id(&"long".into(), Arc::<Long>::clone(&long) as _).unwrap();
    let object = server.poa.id_to_reference(&"long".into()).unwrap();
    let by_tcp = TcpStream::connect(("127.0.0.1", server.orb.listen().unwrap()[0].1)).unwrap();
    let by_unix = std::os::unix::net::UnixStream::connect(&server.path).unwrap();
    for mut client in [Client::new(&object, by_tcp), Client::new(&object, by_unix)] {
        server.sensor.begun.lock().unwrap().clear();
        let mut send = |number, octets: usize| client.send("long", &octets.to_string(), Some(number));
        // The first reply is more than the sockets take. The last request of each lane shows that its thread is done with
        // those before.
        let [first, low, short, last_low] = [16 << 20, 200_000, 10, 10].map(|octets| send(10, octets));
        let [middle, second_middle, last_middle] = [10; 3].map(|octets| send(100, octets));
        let [high, short_high, last_high] = [70_000, 10, 10].map(|octets| send(1_000, octets));
        server.until_begun(3);
        server.until_buffered(7);
        for (at, number) in [10, 10, 10, 100, 1_000, 1_000, 100].into_iter().enumerate() {
            long.permit(number, 1);
            server.until_begun(4 + at);
        }
        assert_eq!(client.replies(7), [first, high, short_high, middle, second_middle, low, short]);
        [10, 100, 1_000].into_iter().for_each(|number| long.permit(number, 1));
        let mut last = client.replies(3);
        last.sort_unstable();
        assert_eq!(last, [last_low, last_middle, last_high]);
    }
}
