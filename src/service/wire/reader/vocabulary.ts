/**
 * The words that bough knows in answers of services, by what they say. Rules combine them: a key is understood by its words, a
 * status by the worst of its words.
 */

function setOf(...texts: readonly string[]): ReadonlySet<string> {
  return new Set(texts.flatMap((text) => text.split(" ")));
}

/** What a status says. */
export const queued = setOf(
  "pending assigned queued enqueued created scheduled accepted submitted new waiting requested received planned deferred",
);
/** As a status, a word that ends in `ing` says the same. */
export const running = setOf(
  "started starting running executing building processing inprogress active working busy ongoing underway alive live paused suspended incomplete",
  "unfinished",
);
/** They end, and leave open how. */
export const ended = setOf(
  "completed complete done finished exited ended closed over concluded processed executed terminal final finalized",
);
/** They may have been ended from outside. */
export const stopped = setOf("stopped terminated halted");
export const succeeded = setOf("success succeeded successful successfully passed ok okay");
/** What a service says of every answer that is no error. */
export const answered = setOf("success ok okay");
/** An image is in its place. A machine may be ready to begin. */
export const stored = setOf("ready available imported");
export const failed = setOf(
  "failed failure fail fails error errored errors rejected expired crashed crash lost evicted dead oom broken fault faulted",
  "exception panicked denied refused invalid unsuccessful unhealthy partial partially skipped unavailable",
);
export const cancelled = setOf("cancelled canceled aborted killed revoked");
export const timedOut = setOf("timeout timedout");
export const negations = setOf("not no non never without");
/** Words around a status that change nothing. */
export const fillers = setOf(
  "with has have is was been the a in normally all code warnings warning job state status task operation op instance execution",
  "exec run build process container command step import image phase result by user at",
);

/** Milestones: `accepted: true` stays true. */
export const milestones = setOf(
  "created accepted submitted received requested scheduled planned deferred new started enqueued queued assigned initializing",
);

/** Keys of a status, and of what came of it in the end. */
export const statusKeys = setOf("status state phase stage lifecycle");
export const conclusionKeys = setOf("conclusion outcome verdict disposition resolution");

/** Objects in which a service answers, and what it starts. */
export const envelopes = setOf("data result response");
export const operationNouns = setOf(
  "operation op instance task job run execution exec invocation command container sandbox build process work workflow machine action",
);
/** Values of other things than the operation. */
export const others = setOf(
  "worker node host agent runner queue cluster region zone project owner account user tenant org organization session network quota",
  "pool scheduler server parent client api provider",
);
/** What was asked for. */
export const requests = setOf(
  "env environment cmd args argv arguments entrypoint labels annotations tags headers request spec config configuration options params",
  "parameters input inputs stdin files mounts volumes cwd workdir shell variables vars limits requested desired wanted target",
  "expected estimated planned max deadline",
);
/** What was before, or may be later. */
export const pasts = setOf("history transitions previous prior former old events timeline audit next");
/** A list of tries, of which the last counts. */
export const tries = setOf("attempts tries retries");
/** Amounts. */
export const measures = setOf("resources usage metrics statistics stats rusage quota");

export const exits = setOf("exit return ret rc retval rv errno");
export const codes = setOf("code status value");
export const signals = setOf("signal sig");
export const errors = setOf("error errors err failure failures fault faults exception exceptions");
export const messages = setOf("message msg detail details description title summary reason note text");
export const names = setOf("name label title url uri href link path");
/** Words of a time at which something is over. */
export const ends = setOf(
  "ended finished completed stopped terminated exited closed done end finish completion stop exit",
);
export const times = setOf("at time date on timestamp ts");
export const progresses = setOf("progress percent percentage");
/** No error at all. */
export const nothings = setOf("none null nil no ok okay success error errors 0 undefined n a");
/** Further words of keys whose value may be a status: `current_state`, `job`. */
export const statusWords = setOf("current last overall provisioning completion is has was the of");

/** Output, by stream. */
export const outputs = setOf("stdout stderr output outputs log logs console");

export const ids = setOf("uuid id guid key handle ref reference");
export const images = setOf("image images snapshot snapshots template rootfs checkpoint");
/** What a key says of an image besides its id. */
export const attributes = setOf(
  "size bytes count tag tags url uri href created status state format os arch architecture platform type kind at time name digest layers",
);
/** The image that something was made of, and the one that was made. */
export const sources = setOf(
  "base source src parent from input original origin initial start starting previous old",
);
export const results = setOf(
  "result results resulting output outputs new created final produced made committed commit snapshot out outcome built",
);

const further = setOf("is last std type kind stream number file base64");

/** All of them, to find the parts of words that are written as one. */
export const vocabulary: ReadonlySet<string> = new Set(
  [
    ...[
      queued,
      running,
      ended,
      stopped,
      succeeded,
      stored,
      failed,
      cancelled,
      timedOut,
      statusKeys,
      conclusionKeys,
    ],
    ...[
      envelopes,
      operationNouns,
      exits,
      codes,
      signals,
      errors,
      messages,
      ends,
      times,
      outputs,
      ids,
      images,
      attributes,
    ],
    ...[sources, results, further, progresses, others, requests],
  ].flatMap((set) => [...set]),
);
