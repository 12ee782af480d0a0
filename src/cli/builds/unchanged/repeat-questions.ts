import { withDeadline } from "../../../service/http/abort.ts";
import { createExchange } from "../../../service/http/exchange.ts";
import type { Invocation } from "../../command-line/command.ts";
import { userAgentOf } from "../../service/choice.ts";
import { type AskedQuestion, readAnswer } from "./asked-questions.ts";
import type { BuildIdentity } from "./identity.ts";

/** Who is slower is asked by the build, which says that it waits. */
const milliseconds = 5000;

/** Asks a service once more; false at the first answer that is another one. Rejects where none comes. */
export async function areAnsweredAlike(
  questions: readonly AskedQuestion[],
  { choice }: BuildIdentity,
  { runtime }: Invocation,
): Promise<boolean> {
  if (choice.kind === "embedded") return false;
  const { clock, fetch, signal: parent } = runtime;
  const { url: baseUrl, token, project } = choice;
  const exchange = createExchange({
    ...{ clock, fetch, baseUrl, userAgent: userAgentOf(runtime) },
    ...(token === undefined ? {} : { token }),
    ...(project === undefined ? {} : { project }),
  });
  return await withDeadline({ clock, milliseconds, parent }, async (signal) => {
    for (const { method, path, body, answer } of questions) {
      const headers = body === undefined ? {} : { "content-type": "application/json" };
      const response = await exchange.send({ method, path, headers }, body, signal);
      if ((await readAnswer(method, response)) !== answer) return false;
    }
    return true;
  });
}
