//! Asynchronous calls on both sides: a service queries its sensors during calls of its own clients, without a
//! thread per call.

use std::{
    future::Future,
    pin::pin,
    sync::{Arc, mpsc},
    task::{Context, Poll, Wake, Waker},
    thread,
};

use spandrel::{Orb, Poa, SystemException, messaging::ExceptionHolder};

spandrel::include_idl!("weather");
use weather::{
    AmiStationHandler, NoSuchPlace, Station, StationAsyncServant, StationServant, station::TemperatureError,
};

/// A synchronous servant.
struct Sensor(f64);

impl StationServant for Sensor {
    fn temperature(&self, _place: &str) -> Result<f64, TemperatureError> {
        Ok(self.0)
    }
}

/// An asynchronous servant, which calls other objects.
struct Service(Vec<Station>);

impl StationAsyncServant for Service {
    async fn temperature(&self, place: &str) -> Result<f64, TemperatureError> {
        if place != "here" {
            return Err(NoSuchPlace { place: place.to_owned() }.into());
        }
        // All requests are sent before the first reply is awaited.
        let asked: Vec<_> = self.0.iter().map(|sensor| sensor.temperature_async(place)).collect();
        let mut sum = 0.0;
        for answer in asked {
            sum += answer.await?;
        }
        Ok(sum / self.0.len() as f64)
    }
}

/// The reply handler of the callback model (AMI).
struct ReplyPrinter(mpsc::Sender<String>);

impl AmiStationHandler for ReplyPrinter {
    fn temperature(&self, degrees: f64) {
        let _ = self.0.send(format!("called back: {degrees}"));
    }

    fn temperature_excep(&self, holder: ExceptionHolder<TemperatureError>) {
        let _ = self.0.send(format!("called back: {}", holder.exception()));
    }
}

/// A minimal executor; any other works as well.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Orb::init(std::env::args())?;
    let poa = Poa::root(&server)?;
    let sensors = [19.0, 20.5, 22.0].map(|degrees| poa.serve(Sensor(degrees)));
    let sensors = sensors.into_iter().collect::<Result<Vec<_>, SystemException>>()?;
    let service: Station = poa.serve_async(Service(sensors))?;

    let client = Orb::init(std::env::args())?;
    let station = block_on(client.string_to_object(&service.to_string())?.narrow_async::<Station>())?;
    println!("awaited: {}", block_on(station.temperature_async("here"))?);

    let (send, told) = mpsc::channel();
    station.sendc_temperature(Some(Arc::new(ReplyPrinter(send))), "nowhere")?;
    println!("{}", told.recv()?);

    let poller = station.sendp_temperature("here");
    while !poller.is_ready(10)? {}
    println!("polled: {}", poller.temperature(0)?);

    client.shutdown()?;
    server.shutdown()?;
    Ok(())
}
