//! A control loop with priorities: a clock, a controller, a sensor and an actuator, while clients ask for reports.
//!
//! Each turn begins in the thread of the clock, at priority 20,000. The controller serves it in its lane of that
//! priority, and calls the sensor, to which the priority goes with the request (CLIENT_PROPAGATED). The actuator runs at
//! a priority of its own (SERVER_DECLARED). Reports have another lane: however many are asked for, a turn does not
//! wait for them.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use spandrel::rt::policies::{PriorityModel, PriorityModelPolicy, ThreadpoolPolicy};
use spandrel::rt::{
    LaneSettings, LinearMapping, PoolSettings, Priority, RtClient, RtCurrent, RtPoaBuilder, RtServerOrb, Scheduling,
    SchedulingClass,
};
use spandrel::{Endpoint, Orb, OrbBuilder, Poa, SystemException};

spandrel::include_idl!("plant");
use plant::{Actuator, ActuatorServant, Controller, ControllerServant, Sensor, SensorServant};

const REPORTS: i16 = 100;
const CONTROL: i16 = 20_000;
const VALVE: i16 = 25_000;
/// The threads of the ORBs read requests for all lanes, and are more urgent than these.
const READERS: i16 = 30_000;

/// The level that the controller aims at, in millimetres.
const TARGET: i32 = 500;
const TURNS: u32 = 200;
const PERIOD: Duration = Duration::from_millis(2);

// ANCHOR: servants
/// The tank. Each movement of its valve is one tick of its time.
struct Tank {
    level: AtomicI32,
    priorities: Priorities,
}

impl SensorServant for Tank {
    fn level(&self) -> Result<i32, SystemException> {
        self.priorities.note("sensor")?;
        Ok(self.level.load(Ordering::Relaxed))
    }
}

impl ActuatorServant for Tank {
    fn adjust(&self, opening: i32) -> Result<(), SystemException> {
        self.priorities.note("actuator")?;
        let inflow = 10;
        self.level.fetch_add(inflow - opening / 5, Ordering::Relaxed);
        Ok(())
    }
}

struct Regulator {
    sensor: Sensor,
    actuator: Actuator,
    levels: Mutex<Vec<i32>>,
    priorities: Priorities,
}

impl ControllerServant for Regulator {
    fn step(&self) -> Result<(), SystemException> {
        self.priorities.note("step")?;
        let level = self.sensor.level()?;
        self.actuator.adjust((level - TARGET + 50).clamp(0, 100))?;
        self.levels.lock().unwrap().push(level);
        Ok(())
    }

    fn report(&self) -> Result<f64, SystemException> {
        self.priorities.note("report")?;
        let levels = self.levels.lock().unwrap().clone(); // a report keeps no turn waiting
        let until = Instant::now() + Duration::from_millis(2);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        let last = &levels[levels.len().saturating_sub(100)..];
        Ok(last.iter().map(|level| f64::from(*level)).sum::<f64>() / last.len().max(1) as f64)
    }
}
// ANCHOR_END: servants

/// Collects the priorities at which operations ran, each pair once.
#[derive(Clone)]
struct Priorities {
    current: RtCurrent,
    entries: Arc<Mutex<Vec<(&'static str, i16)>>>,
}

impl Priorities {
    fn note(&self, operation: &'static str) -> Result<(), SystemException> {
        let entry = (operation, self.current.the_priority()?.get());
        let mut entries = self.entries.lock().unwrap();
        if !entries.contains(&entry) {
            entries.push(entry);
        }
        Ok(())
    }
}

// ANCHOR: adapter
/// An adapter with a lane for each of these priorities.
fn adapter(
    orb: &Orb,
    scheduling: &Scheduling,
    model: PriorityModel,
    lanes: &[i16],
) -> Result<(Poa, RtServerOrb), Error> {
    let rt_orb = RtServerOrb::for_orb(orb, scheduling.clone());
    let lane = |priority: &i16| {
        Ok(LaneSettings { priority: Priority::new(*priority)?, static_threads: 1, dynamic_threads: 0 })
    };
    let lanes = PoolSettings::with_lanes(lanes.iter().map(lane).collect::<Result<_, SystemException>>()?);
    let pool = rt_orb.create(PoolSettings { buffering: Some((64, 1 << 20)), ..lanes })?;
    let priority = PriorityModelPolicy { model, server_priority: Priority::new(VALVE)? };
    let name = if model == PriorityModel::ServerDeclared { "declared" } else { "propagated" };
    let policies = [priority.into(), ThreadpoolPolicy(pool).into()];
    // The pools live as long as `rt_orb`.
    Ok((Poa::root(orb)?.child(name).real_time(&rt_orb, policies)?.create()?, rt_orb))
}
// ANCHOR_END: adapter

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    spandrel::diagnostics::log::init()?;
    // ANCHOR: orbs
    let scheduling = Scheduling::new(SchedulingClass::Fifo, Arc::new(LinearMapping));
    let current = RtCurrent::new(scheduling.clone());
    current.set_the_priority(READERS)?; // which the threads of the ORBs inherit
    let builder = || -> OrbBuilder { Orb::builder().binding_policies(RtClient::new(&scheduling)) };
    let (plant, control) =
        (builder().listen(Endpoint::new("127.0.0.1", 0)), builder().listen(Endpoint::new("127.0.0.1", 0)));
    let (plant, control, client) = (plant.build()?, control.build()?, builder().build()?);
    // ANCHOR_END: orbs
    let priorities = Priorities { current: current.clone(), entries: Arc::default() };

    // ANCHOR: objects
    let (measured, _lanes) = adapter(&plant, &scheduling, PriorityModel::ClientPropagated, &[REPORTS, CONTROL])?;
    let (moved, _valve_lane) = adapter(&plant, &scheduling, PriorityModel::ServerDeclared, &[VALVE])?;
    let tank = Arc::new(Tank { level: AtomicI32::new(0), priorities: priorities.clone() });
    let sensor: Sensor = measured.serve(Arc::clone(&tank) as Arc<dyn SensorServant>)?;
    let actuator: Actuator = moved.serve(tank as Arc<dyn ActuatorServant>)?;

    let regulator = Regulator {
        sensor: control.string_to_object(&sensor.to_string())?.narrow()?,
        actuator: control.string_to_object(&actuator.to_string())?.narrow()?,
        levels: Mutex::default(),
        priorities: priorities.clone(),
    };
    let (loops, _control_lanes) = adapter(&control, &scheduling, PriorityModel::ClientPropagated, &[REPORTS, CONTROL])?;
    let reference: Controller = loops.serve(regulator)?;
    let controller: Controller = client.string_to_object(&reference.to_string())?.narrow()?;
    // ANCHOR_END: objects

    // ANCHOR: threads
    let is_over = AtomicBool::new(false);
    let (send, longest) = mpsc::channel();
    thread::scope(|scope| -> Result<(), Error> {
        let clock = scope.spawn(|| -> Result<(), SystemException> {
            current.set_the_priority(CONTROL)?;
            let begun = Instant::now();
            let mut longest = Duration::ZERO;
            for turn in 0..TURNS {
                thread::sleep((begun + turn * PERIOD).saturating_duration_since(Instant::now()));
                let before = Instant::now();
                controller.step()?;
                longest = longest.max(before.elapsed());
            }
            let _ = send.send(longest);
            Ok(())
        });
        let readers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| -> Result<f64, SystemException> {
                    current.set_the_priority(REPORTS)?;
                    let mut mean = controller.report()?;
                    while !is_over.load(Ordering::Relaxed) {
                        mean = controller.report()?;
                    }
                    Ok(mean)
                })
            })
            .collect();
        let turns = clock.join().expect("the clock does not panic");
        is_over.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().expect("a reader does not panic")?;
        }
        Ok(turns?)
    })?;
    // ANCHOR_END: threads

    let mut entries = priorities.entries.lock().unwrap().clone();
    entries.sort_unstable();
    entries.iter().for_each(|(operation, priority)| println!("{operation} ran at {priority}"));
    current.set_the_priority(REPORTS)?;
    println!("{TURNS} turns, the mean level is {:.0} mm", controller.report()?);
    eprintln!("native priorities: {:?}; the longest turn took {:?}", scheduling.class(), longest.recv()?);
    for orb in [client, control, plant] {
        orb.shutdown()?;
    }
    Ok(())
}
