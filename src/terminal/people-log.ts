import type { BuildEvent } from "../builder/events.ts";
import { describeMissingParts, type LogLine, renderBuildEvent, summarize } from "./build-log.ts";
import type { LogLevel } from "./log.ts";
import { shortId } from "./short-id.ts";

/**
 * Renders an event for a person who watches the build: only what the rows of steps do not show, and without whole ids. At level
 * `debug` it is rendered as for programs. `label`: see `renderBuildEvent`.
 */
export function renderForPeople(event: BuildEvent, label: string, logLevel: LogLevel): LogLine[] {
  if (logLevel === "debug") return renderBuildEvent(event, label);
  switch (event.type) {
    case "warning":
    case "excluded":
    case "large-context":
    case "explained":
    case "url-cache-hit":
    case "forgotten-files":
    case "forgotten-layer":
      return renderBuildEvent(event, label);
    case "cancelled":
      return event.confirmed ? [] : renderBuildEvent(event, label);
    case "tagged":
      return [{ level: "info", text: `tagged ${shortId(event.image)} as ${event.tag}` }];
    case "finished": {
      const text = summarize(event.result, { isBrief: true });
      return [{ level: "info", text }, ...describeMissingParts(event.result)];
    }
    default:
      return [];
  }
}
