import type { StepEvent } from "../../builder/events.ts";
import { formatCount } from "../quantity.ts";
import type { Span } from "./spans.ts";

type Begun = Pick<Span, "name" | "details">;

/** Returns the activity that a step begins with this event, if any. */
export function beginActivity(event: StepEvent): Begun | undefined {
  switch (event.type) {
    case "importing":
      return { name: `import ${event.reference}`, details: { url: event.url } };
    case "hashing":
      return { name: "read files", details: { files: event.files, bytes: event.bytes } };
    case "downloading":
      return { name: "download", details: { url: event.url } };
    case "repository":
      return event.cached ? undefined : { name: "fetch", details: { url: event.url, commit: event.commit } };
    case "uploading":
      return {
        name: `upload ${formatCount(event.files, "file")}`,
        details: { files: event.files, bytes: event.bytes },
      };
    case "spawned":
      return { name: "operation", details: { operation: event.operation, title: event.title } };
    case "resumed":
      return {
        name: "operation",
        details: { operation: event.operation, title: event.title, resumed: true },
      };
    case "cancelling":
      return { name: "cancel", details: { operation: event.operation } };
    default:
      return undefined;
  }
}

/** True if the step's activity continues after this event. */
export function continuesActivity({ type }: StepEvent): boolean {
  return continuingTypes.includes(type);
}

const continuingTypes: readonly StepEvent["type"][] = [
  "warning",
  "import-progress",
  "explained",
  "excluded",
  "large-context",
  "hashed",
  "download-progress",
  "upload-progress",
  "forgotten-files",
  "output",
];

/** Returns the details of an activity from the event that ends it. */
export function describeEnd(event: StepEvent): object {
  switch (event.type) {
    case "resolved":
      return { image: event.image };
    case "downloaded":
      return { bytes: event.bytes };
    case "url-cache-hit":
      return { cached: true };
    case "repository":
      return { commit: event.commit, cached: event.cached };
    case "uploaded":
      return { sentBytes: event.sentBytes, reused: event.reused };
    case "ran":
      return { succeeded: event.succeeded, outputBytes: event.stdout.bytes + event.stderr.bytes };
    case "cancelled":
      return { confirmed: event.confirmed };
    default:
      return {};
  }
}
