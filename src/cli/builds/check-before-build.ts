/** Checks what is built, and reads what it needs, before a service is asked for anything. */
import type { BuildEvent, Emit } from "../../builder/events.ts";
import { missingParts } from "../../builder/stages/step-record.ts";
import { type Finding, lineOf } from "../../check/rules.ts";
import { withHint } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import type { Progress } from "../../terminal/progress.ts";
import { buildSession } from "../contexts/context-group.ts";
import { reportOrigin } from "../contexts/fetched-context.ts";
import { isPushed, requireCompleteImage } from "../export/build-outputs.ts";
import { chooseServiceFor, serviceName } from "../service/choice.ts";
import { readSigner } from "../signing/read-signer.ts";
import { readSharing } from "./build-cache.ts";
import { chooseServices } from "./build-services.ts";
import { readCheckedDockerfile } from "./checked-dockerfile.ts";
import type { FoundOutputs } from "./daemon-output.ts";
import type { BuildInputs } from "./inputs.ts";
import type { BuildOptions } from "./options/build-options.ts";
import type { BuildsTogether } from "./prepare-build.ts";
import type { Recording } from "./recording/recording.ts";
import type { BuildInvocation } from "./request.ts";
import { type openLock, requireInputsKept } from "./result-files.ts";

interface GivenBuild {
  inputs: BuildInputs;
  options: BuildOptions;
  destination: FoundOutputs;
  opened: Awaited<ReturnType<typeof openLock>>;
}

export async function checkBeforeBuild(
  { inputs, options, destination, opened }: GivenBuild,
  { log, emit }: Pick<Progress, "log" | "emit">,
  invocation: BuildInvocation,
  { recording, together }: { recording: Recording; together: BuildsTogether | undefined },
) {
  const { runtime, options: asked } = invocation;
  const { dialect, platforms } = inputs;
  const { attestations } = options;
  const { outputs } = destination;
  requireInputsKept(invocation);
  const chosen = chooseServices(invocation, platforms);
  const session = buildSession(inputs.location);
  recording.begin(inputs, {
    session,
    service: serviceName(chooseServiceFor(runtime, chosen[0].globals)),
  });
  if (runtime.isPlugin === true)
    (await import("./metadata/local-state.ts")).noteForDocker(recording, inputs, invocation, log);
  const { dockerfile, needed, directive, findings } = await readCheckedDockerfile(inputs, invocation, opened);
  destination.daemon?.requireKeeps({
    "images of several platforms": platforms.length > 1,
    "provenance and packages":
      attestations?.provenance?.isInlineOnly === false || attestations?.sbom !== undefined,
  });
  if (!dialect.keepsConfiguration) requireCompleteImage(missingParts(dockerfile), outputs, asked);
  const isFound = reportFindings(findings, emit);
  const secrets = await inputs.secrets.load();
  recording.hide(secrets);
  const sign = await readSigner(asked.sign, isPushed(outputs), runtime, log, together?.signers);
  const attesting =
    attestations &&
    (await import("../export/attest.ts")).prepareAttestations(
      inputs,
      secrets,
      attestations,
      async (...scanned) =>
        (await import("../scan/scan-image.ts")).scanImage(...scanned, asked.timeout, { ...invocation, log }),
    );
  if (inputs.fetched !== undefined)
    reportOrigin(inputs.fetched, recording.observe(attesting?.inputsFor(platforms[0])));
  const sharing = await readSharing(invocation, inputs);
  /** False for a warning that the Dockerfile turns off, or that the checks have reported. */
  const isShown = (event: BuildEvent) =>
    event.type !== "warning" ||
    event.rule === undefined ||
    (directive.isReported(event.rule, event.line) && !isFound(event.rule, event.line));
  return { chosen, session, dockerfile, needed, isShown, secrets, sign, attesting, sharing };
}

/** Warns of what the checks have found. Returns a function that says whether the build need not warn of it again. */
function reportFindings(
  findings: readonly Finding[],
  emit: Emit,
): (rule: string, line: number | undefined) => boolean {
  const keyOf = (rule: string, line: number | undefined) => `${rule} ${line}`;
  for (const finding of findings) {
    const { rule, skipped } = finding;
    const message = wording`${withHint(finding)} (${rule})`;
    emit({ type: "warning", rule, message, line: lineOf(finding), ...(skipped && { skipped }) });
  }
  const found = new Set(findings.map((finding) => keyOf(finding.rule, lineOf(finding))));
  return (rule, line) => found.has(keyOf(rule, line));
}
