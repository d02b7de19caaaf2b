//! Who is connected: connections are shared fairly by client, idle ones give way, and some are kept back for health.

use std::{
    collections::{BTreeMap, HashMap},
    net::{IpAddr, Ipv6Addr},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use tokio_util::sync::CancellationToken;

use crate::server::ConnectionLimits;

/// The open connections.
pub(crate) struct Connections {
    common: usize,
    per_client: usize,
    reserve: usize,
    /// Tells who has been idle for longer without a clock.
    turns: AtomicU64,
    open: Mutex<BTreeMap<u64, Open>>,
}

/// Which part of the connections one belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// Any request is served.
    Common,
    /// Kept back for health: nothing else is served, and not for long.
    Reserve,
}

struct Open {
    client: Client,
    share: Share,
    activity: Arc<Activity>,
}

/// What a connection does.
struct Activity {
    requests: AtomicUsize,
    idle_since: AtomicU64,
    give_way: CancellationToken,
}

impl Activity {
    fn is_idle(&self) -> bool {
        self.requests.load(Ordering::Relaxed) == 0
    }
}

/// Whom a connection counts for: an address; of IPv6 the network that a single machine usually has for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Client(IpAddr);

impl Client {
    fn of(peer: IpAddr) -> Self {
        Self(match peer.to_canonical() {
            IpAddr::V6(address) if !address.is_loopback() => {
                let [a, b, c, d, ..] = address.segments();
                Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
            }
            address => address,
        })
    }
}

impl Connections {
    pub(crate) fn new(limits: &ConnectionLimits) -> Arc<Self> {
        Arc::new(Self {
            common: limits.connections,
            per_client: limits.connections_per_client,
            reserve: limits.connections_for_health,
            turns: AtomicU64::new(0),
            open: Mutex::default(),
        })
    }

    /// Takes a connection in. Whoever is idle gives way to it; if nobody is, it is served health only. `None` if even
    /// that is not possible at the moment.
    pub(crate) fn admit(self: &Arc<Self>, peer: IpAddr) -> Option<Seat> {
        let client = Client::of(peer);
        let mut open = self.open();
        let share = if make_room(&mut open, Share::Common, self.common, Some((client, self.per_client))) {
            Share::Common
        } else if make_room(&mut open, Share::Reserve, self.reserve, None) {
            Share::Reserve
        } else {
            return None;
        };
        let turn = self.turn();
        let activity = Arc::new(Activity {
            requests: AtomicUsize::new(0),
            idle_since: AtomicU64::new(turn),
            give_way: CancellationToken::new(),
        });
        open.insert(turn, Open { client, share, activity: activity.clone() });
        Some(Seat(Arc::new(Held { connections: self.clone(), number: turn, client, share, activity })))
    }

    /// Lets one idle connection go, for the system has no room for another.
    pub(crate) fn shrink(&self) {
        let mut open = self.open();
        evict(&mut open, |_| true);
    }

    fn turn(&self) -> u64 {
        self.turns.fetch_add(1, Ordering::Relaxed)
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether there is room in a share, if need be by letting an idle connection go.
fn make_room(
    open: &mut BTreeMap<u64, Open>,
    share: Share,
    limit: usize,
    client: Option<(Client, usize)>,
) -> bool {
    if let Some((client, limit)) = client {
        let own = open.values().filter(|other| other.share == share && other.client == client).count();
        if own >= limit {
            return evict(open, |other| other.share == share && other.client == client);
        }
    }
    let taken = open.values().filter(|other| other.share == share).count();
    taken < limit || evict(open, |other| other.share == share)
}

/// Lets the connection go that has been idle for the longest, of the client that has the most idle ones.
fn evict(open: &mut BTreeMap<u64, Open>, eligible: impl Fn(&Open) -> bool) -> bool {
    let mut idle: HashMap<Client, (usize, u64, u64)> = HashMap::new();
    for (&number, connection) in open.iter().filter(|(_, open)| eligible(open) && open.activity.is_idle()) {
        let since = connection.activity.idle_since.load(Ordering::Relaxed);
        let (count, longest, which) = idle.entry(connection.client).or_insert((0, since, number));
        *count += 1;
        if since < *longest {
            (*longest, *which) = (since, number);
        }
    }
    let most = idle.into_values().max_by_key(|(count, longest, _)| (*count, std::cmp::Reverse(*longest)));
    let Some(gone) = most.and_then(|(_, _, number)| open.remove(&number)) else { return false };
    gone.activity.give_way.cancel();
    true
}

/// A connection's place among the others, until the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Seat(Arc<Held>);

struct Held {
    connections: Arc<Connections>,
    number: u64,
    client: Client,
    share: Share,
    activity: Arc<Activity>,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.connections.open().remove(&self.number);
    }
}

impl Seat {
    pub(crate) fn share(&self) -> Share {
        self.0.share
    }

    /// Whom the connection counts for.
    pub(crate) fn client(&self) -> Client {
        self.0.client
    }

    /// Whether a request is in hand.
    pub(crate) fn is_busy(&self) -> bool {
        !self.0.activity.is_idle()
    }

    /// Ends when the connection is to give way to another.
    pub(crate) async fn gives_way(&self) {
        self.0.activity.give_way.cancelled().await;
    }

    /// A request is in hand for as long as the answer is held.
    pub(crate) fn begin(&self) -> InHand {
        self.0.activity.requests.fetch_add(1, Ordering::Relaxed);
        InHand(self.0.clone())
    }
}

/// A request in hand.
pub(crate) struct InHand(Arc<Held>);

impl Drop for InHand {
    fn drop(&mut self) {
        let activity = &self.0.activity;
        activity.idle_since.store(self.0.connections.turn(), Ordering::Relaxed);
        activity.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections() -> Arc<Connections> {
        let limits = ConnectionLimits {
            connections: 3,
            connections_per_client: 2,
            connections_for_health: 1,
            ..ConnectionLimits::default()
        };
        Connections::new(&limits)
    }

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    fn gave_way(seat: &Seat) -> bool {
        seat.0.activity.give_way.is_cancelled()
    }

    #[test]
    fn a_client_beyond_its_share_displaces_itself() {
        let connections = connections();
        let first = connections.admit(address(1)).unwrap();
        let second = connections.admit(address(1)).unwrap();
        drop(first.begin());
        let third = connections.admit(address(1)).unwrap();
        assert_eq!(third.share(), Share::Common);
        assert_eq!([&first, &second, &third].map(gave_way), [false, true, false], "the one idle for longest");
    }

    #[test]
    fn the_client_with_most_idle_connections_gives_way() {
        let connections = connections();
        let alone = connections.admit(address(1)).unwrap();
        let many = [2, 2].map(|client| connections.admit(address(client)).unwrap());
        let new = connections.admit(address(3)).unwrap();
        assert_eq!((gave_way(&alone), gave_way(&many[0]), gave_way(&many[1])), (false, true, false));
        assert_eq!(new.share(), Share::Common);
    }

    #[test]
    fn where_all_are_busy_there_is_a_reserve_and_it_never_fills_up() {
        let connections = connections();
        let busy: Vec<_> =
            (1..=3).map(|client| connections.admit(address(client)).unwrap().begin()).collect();
        let seats: Vec<_> = (4..=6).map(|client| connections.admit(address(client)).unwrap()).collect();
        assert!(seats.iter().all(|seat| seat.share() == Share::Reserve));
        assert_eq!(seats.iter().map(gave_way).collect::<Vec<_>>(), [true, true, false]);
        let _answers = seats[2].begin();
        assert!(connections.admit(address(7)).is_none());
        drop(busy);
        assert_eq!(connections.admit(address(7)).unwrap().share(), Share::Common);
    }

    #[test]
    fn an_ipv6_network_is_one_client_and_a_mapped_address_is_its_ipv4_one() {
        let client = |address: &str| Client::of(address.parse().unwrap());
        assert_eq!(client("2001:db8::1"), client("2001:db8::ffff:2"));
        assert_ne!(client("2001:db8::1"), client("2001:db8:0:1::1"));
        assert_eq!(client("::ffff:192.0.2.1"), client("192.0.2.1"));
    }
}
