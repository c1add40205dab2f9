//! What every handler shares.

use std::net::SocketAddr;
use std::sync::Arc;

use gleaner::Pool;
use gleaner_intake::channels::Channels;
use gleaner_intake::dumps::Dumps;
use gleaner_intake::files::Files;
use gleaner_intake::mailboxes::Gmail;
use gleaner_intake::media::Media;
use gleaner_intake::runs::Artefacts;
use gleaner_intake::webhooks::Webhooks;
use gleaner_supabase::access::Access;
use gleaner_supabase::realtime::Realtime;
use gleaner_supabase::rest::Rest;

use crate::Config;
use crate::health::Probe;
use crate::queues::Queues;

#[derive(Debug)]
pub struct State {
    pub config: Config,
    /// The address we really listen on.
    pub address: SocketAddr,
    /// The connections of webhooks.
    pub pool: Pool,
    /// Those of the routes that members, workers and programs call, apart from `/rest/v1`.
    pub clients: Pool,
    pub sign_in: Pool,
    pub probe: Probe,
    pub channels: Channels,
    pub dumps: Dumps,
    pub artefacts: Artefacts,
    pub files: Files,
    pub access: Access,
    pub gmail: Arc<Gmail>,
    pub media: Arc<Media>,
    pub queues: Queues,
    pub rest: Rest,
    /// None when it is disabled in the configuration.
    pub realtime: Option<Realtime>,
    pub webhooks: Arc<Webhooks>,
}
