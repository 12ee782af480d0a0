import { existsSync } from "node:fs";
import { join } from "node:path";
import { formatCount } from "../../terminal/quantity.ts";
import type { Runtime } from "../process/runtime.ts";
import { engineDirectory } from "../service/choice.ts";
import { type CheckResult, failedCheck } from "./check-result.ts";

const check = "engine's store";

/** Checks by names and sizes that everything the engine keeps is in its place. Returns nothing if there is no engine yet. */
export async function checkEngineStore(runtime: Runtime): Promise<CheckResult[]> {
  const directory = engineDirectory(runtime);
  if (!existsSync(join(directory, "engine.db"))) return [];
  try {
    const { checkQuickly } = await import("../../engine/check/check.ts");
    const { files, layers, images, damage } = await checkQuickly(directory);
    const counts = [
      formatCount(images, "image"),
      formatCount(layers, "layer"),
      formatCount(files, "uploaded file"),
    ];
    if (damage.length === 0) return [{ check, status: "ok", detail: counts.join(", ") }];
    const [first] = damage;
    const detail = `${damage.length} damaged of ${counts.join(", ")}; ${first?.kind} ${first?.name}: ${first?.problem}`;
    const fix = "bough engine check --repair (the next build also repairs it)";
    return [{ check, status: "warning", detail, fix }];
  } catch (error) {
    return [failedCheck(check, error)];
  }
}
