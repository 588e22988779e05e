//! What kind of play is simulated.

/// Parameters of the play on all servers. A range is one of values: each server has its own within it.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// As `clqd truth --scenario` names it.
    pub name: &'static str,
    pub about: &'static str,
    /// Time limit of a round, minutes; drawn evenly on the logarithmic scale.
    pub time_limit_min: (f64, f64),
    /// Share of the servers whose rounds also end when a player has enough points.
    pub point_limits: f64,
    /// Time between the end of a round and the next round, in which the final list is shown, s.
    pub intermission_s: (f64, f64),
    /// Each intermission is longer by up to this, s.
    pub intermission_varies_s: f64,
    /// Share of the players who leave in an intermission.
    pub leave_in_intermission: f64,
    /// Share of the players who leave in the last minute of a round.
    pub leave_before_end: f64,
    /// Share of the scans that fail.
    pub missed: f64,
    /// Players at the busiest hour.
    pub players: (f64, f64),
}

impl Scenario {
    pub const STANDARD: Scenario = Scenario {
        name: "standard",
        about: "rounds of 5 to 40 minutes, a third with point limits, players who leave",
        time_limit_min: (5.0, 40.0),
        point_limits: 1.0 / 3.0,
        intermission_s: (0.0, 30.0),
        intermission_varies_s: 0.0,
        leave_in_intermission: 0.05,
        leave_before_end: 0.03,
        missed: 0.0,
        players: (9.0, 24.0),
    };

    pub const ALL: [Scenario; 8] = [
        Scenario::STANDARD,
        Scenario {
            name: "short-rounds",
            about: "rounds of 5 minutes",
            time_limit_min: (5.0, 5.0),
            point_limits: 0.0,
            ..Scenario::STANDARD
        },
        Scenario {
            name: "long-rounds",
            about: "rounds of 40 minutes",
            time_limit_min: (40.0, 40.0),
            point_limits: 0.0,
            ..Scenario::STANDARD
        },
        Scenario {
            name: "time-limits",
            about: "rounds of 5 to 40 minutes that end by time only",
            point_limits: 0.0,
            ..Scenario::STANDARD
        },
        Scenario {
            name: "point-limits",
            about: "rounds that end by points only",
            time_limit_min: (240.0, 240.0),
            point_limits: 1.0,
            ..Scenario::STANDARD
        },
        Scenario {
            name: "quitters",
            about: "half of the players leave at the end of a round",
            leave_in_intermission: 0.4,
            leave_before_end: 0.1,
            ..Scenario::STANDARD
        },
        Scenario { name: "packet-loss", about: "5 % of the scans fail", missed: 0.05, ..Scenario::STANDARD },
        Scenario {
            name: "varying-intermissions",
            about: "each intermission is up to 30 s longer",
            intermission_varies_s: 30.0,
            ..Scenario::STANDARD
        },
    ];

    pub fn named(name: &str) -> Option<Scenario> {
        Scenario::ALL.into_iter().find(|scenario| scenario.name == name)
    }
}
