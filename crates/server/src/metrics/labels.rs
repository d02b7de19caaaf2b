//! The closed sets that labels are taken from, in kube-scheduler's spelling: series stay as few as these allow.

macro_rules! label {
    ($(#[$about:meta])* $name:ident { $($(#[$what:meta])* $value:ident = $text:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$what])* #[doc = concat!("`", $text, "`")] $value,)+
        }

        impl $name {
            /// Every value, in order.
            pub const ALL: &[Self] = &[$(Self::$value,)+];

            /// As it is written in a series.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$value => $text,)+ }
            }
        }
    };
}

label! {
    /// A point at which plugins take part in a cycle.
    ExtensionPoint {
        PreFilter = "PreFilter",
        Filter = "Filter",
        PreFilterExtensionAddPod = "PreFilterExtensionAddPod",
        PreFilterExtensionRemovePod = "PreFilterExtensionRemovePod",
        PostFilter = "PostFilter",
        PreScore = "PreScore",
        Score = "Score",
        ScoreExtensionNormalize = "ScoreExtensionNormalize",
        PreBind = "PreBind",
        PreBindPreFlight = "PreBindPreFlight",
        Bind = "Bind",
        PostBind = "PostBind",
        Reserve = "Reserve",
        Unreserve = "Unreserve",
        Permit = "Permit",
    }
}

label! {
    /// What a plugin, or all plugins of an extension point, answered.
    Status {
        Success = "Success",
        Error = "Error",
        Unschedulable = "Unschedulable",
        UnschedulableAndUnresolvable = "UnschedulableAndUnresolvable",
        Wait = "Wait",
        Skip = "Skip",
        Pending = "Pending",
    }
}

label! {
    /// How an attempt to schedule a pod ended.
    Attempt {
        Scheduled = "scheduled",
        Unschedulable = "unschedulable",
        Error = "error",
    }
}

label! {
    /// Where pending pods wait.
    Queue {
        Active = "active",
        Backoff = "backoff",
        Unschedulable = "unschedulable",
        /// Held back by scheduling gates; pods come to it as `unschedulable`.
        Gated = "gated",
    }
}

label! {
    /// What a queueing hint said about an event.
    Hint {
        Queue = "Queue",
        QueueSkip = "QueueSkip",
        Error = "Error",
    }
}

label! {
    /// What the scheduler's cache counts.
    Cached {
        Nodes = "nodes",
        Pods = "pods",
        AssumedPods = "assumed_pods",
    }
}

label! {
    /// Work that runs beside the scheduling cycle.
    Task {
        Binding = "binding",
        PrioritizingExtender = "prioritizing_extender",
        Preemption = "DefaultPreemption",
    }
}

label! {
    /// Whether something went well.
    Success {
        Success = "success",
        Error = "error",
    }
}

label! {
    /// Writes to the API server that the cycle does not wait for.
    Call {
        PodStatusPatch = "pod_status_patch",
        PodBinding = "pod_binding",
    }
}

label! {
    /// Steps of volume scheduling that may fail.
    VolumeStage {
        Predicate = "predicate",
        Assume = "assume",
        Bind = "bind",
    }
}

label! {
    /// How making a claim, or waiting for a device, has ended.
    AwaitedStatus {
        Success = "success",
        Failure = "failure",
        Timeout = "timeout",
        Error = "error",
    }
}

label! {
    /// Steps in the older summary of scheduling.
    Operation {
        PredicateEvaluation = "predicate_evaluation",
        PriorityEvaluation = "priority_evaluation",
        PreemptionEvaluation = "preemption_evaluation",
        Binding = "binding",
    }
}

label! {
    /// HTTP methods of requests to the API server.
    Method {
        Get = "GET",
        Post = "POST",
        Put = "PUT",
        Patch = "PATCH",
        Delete = "DELETE",
    }
}

label! {
    /// What an extender is asked for.
    ExtenderVerb {
        Filter = "filter",
        Prioritize = "prioritize",
        Preempt = "preempt",
        Bind = "bind",
    }
}

label! {
    /// What came of a call to an extender.
    ExtenderResult {
        Answered = "answered",
        /// It answered that it failed.
        Refused = "refused",
        /// It could not be reached, broke off, or answered with another status than 200.
        Failed = "failed",
        TimedOut = "timeout",
        /// Its response is invalid.
        Invalid = "invalid",
    }
}

label! {
    /// What is odd about an extender's scores, and passed over.
    ScoreAnomaly {
        /// They are for a node that it was not asked about.
        UnknownHost = "unknown_host",
        /// They are below 0 or above 10.
        OutOfRange = "out_of_range",
    }
}

label! {
    /// By which way the engine decided.
    Path {
        Fast = "fast",
        Slow = "slow",
    }
}

label! {
    /// What came of a changed file of a WebAssembly plugin.
    Reload {
        Loaded = "loaded",
        Refused = "refused",
    }
}
