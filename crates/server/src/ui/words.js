// Amounts, spans and events in words.

const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** An amount of a resource as people write it. */
export function amount(resource, value) {
  if (resource === "cpu") return value === 1000 ? "1 core" : `${trimmed(value / 1000)} cores`;
  if (resource === "memory" || resource === "ephemeral-storage" || resource.startsWith("hugepages-")) {
    let unit = 0;
    while (value >= 1024 && unit < BINARY.length - 1) {
      value /= 1024;
      unit += 1;
    }
    return `${trimmed(value)} ${BINARY[unit]}`;
  }
  return count(value);
}

function trimmed(value) {
  return value >= 100 ? Math.round(value).toLocaleString("en") : String(Math.round(value * 10) / 10);
}

export function count(value) {
  return Math.round(value).toLocaleString("en");
}

export function percent(part) {
  return Number.isFinite(part) ? `${Math.round(100 * part)} %` : "–";
}

/** A span of seconds. */
export function span(seconds) {
  if (seconds === undefined || seconds === null) return "";
  if (seconds < 1) return "now";
  if (seconds < 100) return `${Math.round(seconds)} s`;
  if (seconds < 6000) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}

export function microseconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 1000) return `${value < 10 ? value.toFixed(1) : Math.round(value)} µs`;
  if (value < 1e6) return `${(value / 1000).toFixed(value < 1e4 ? 1 : 0)} ms`;
  return `${(value / 1e6).toFixed(1)} s`;
}

/** One thing, or several. */
export function number(value, one, several = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : several}`;
}

export const QUEUES = {
  Active: ["active", "waits for its turn"],
  InFlight: ["in flight", "is being scheduled or bound"],
  Backoff: ["backoff", "was tried in vain and is kept back for a while"],
  Preempting: ["waiting for preemption", "room is being made for it"],
  Unschedulable: ["unschedulable", "waits for an event that can help it"],
  Gated: ["gated", "is held back before the queue"],
};

/** Where a pod waits; one that room is being made for is told apart. */
export function queueOf(pod) {
  return pod.nominatedNode && pod.queue !== "InFlight" ? "Preempting" : pod.queue;
}

const EVENTS = [
  [/^AssignedPodDelete$/, "a pod leaves a node"],
  [/^AssignedPodAdd$/, "a pod comes to a node"],
  [/^(Unschedulable)?PodUpdatePodSchedulingGates/, "its scheduling gates are removed"],
  [/^(Unschedulable)?PodUpdatePodToleration/, "it is given a toleration"],
  [/^(Unschedulable)?PodUpdatePodScaleDown/, "it asks for less"],
  [/^AssignedPodUpdatePodScaleDown/, "a pod on a node asks for less"],
  [/^PodDelete$/, "a pod leaves a node"],
  [/^PodAdd$/, "a pod comes to a node"],
  [/^UnschedulablePodDelete$/, "a pod that waits is deleted"],
  // The same again, for the pods on nodes: it is the waiting pod that counts.
  [/^AssignedPodUpdatePod(SchedulingGates|Toleration)/, null],
  [/^AssignedPodUpdate/, "the labels of a pod on a node change"],
  [/^(Unschedulable)?Pod/, "the pod itself is changed"],
  [/^NodeAdd$/, "a node is added"],
  [/^NodeUpdateNodeAllocatable$/, "a node gets more to allocate"],
  [/^NodeUpdateNodeLabel$/, "a node's labels change"],
  [/^NodeUpdateNodeTaint$/, "a node loses a taint or is uncordoned"],
  [/^NodeUpdate/, "a node changes"],
  [/^NodeDelete$/, "a node goes"],
  [/PersistentVolumeClaim/, "a volume claim is made or bound"],
  [/PersistentVolume/, "a volume is made or changed"],
  [/StorageClass/, "a storage class is made"],
  [/CSI|Csi|VolumeAttachment/, "a volume driver, its capacity or an attachment changes"],
  [/ResourceClaim|ResourceSlice|DeviceClass/, "devices, or claims to them, change"],
];

/** Events in words, each once. */
export function events(labels) {
  const words = new Set();
  for (const label of labels) {
    const known = EVENTS.find(([pattern]) => pattern.test(label));
    const word = known ? known[1] : label;
    if (word) words.add(word);
  }
  return [...words];
}
