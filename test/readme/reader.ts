import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { compileBough } from "../support/compiled.ts";
import { Registry } from "../support/registry.ts";

export interface Ended {
  exitCode: number;
  /** Standard output and standard error, in their order. */
  output: string;
}

const secondsPerBlock = 120;

/** The service of a pipeline: an engine with its own state. */
interface Service {
  url: string;
  stop(): Promise<void>;
}

const token = "secret-token";

/**
 * A user who follows a document from the top, with a new home, bough in PATH, and the working directory `greeter`. A registry
 * on loopback has the images of Docker Hub.
 */
export class Reader {
  readonly #home: string;
  readonly #directory: string;
  readonly #registry: Registry;
  /** Started for the first pipeline. */
  #service: Service | undefined;

  private constructor(home: string, registry: Registry) {
    this.#home = home;
    this.#directory = join(home, "greeter");
    this.#registry = registry;
  }

  static async start(): Promise<Reader> {
    const home = temporaryDirectory();
    const registry = await Registry.start();
    registry.push(await makeBusyboxLayout(join(home, "layout")), "library/alpine:3.20");
    rmSync(join(home, "layout"), { recursive: true });
    const mirror = `[[registry]]\nprefix = "docker.io"\nlocation = "${registry.host}"\ninsecure = true\n`;
    mkdirSync(join(home, ".config/containers"), { recursive: true });
    writeFileSync(join(home, ".config/containers/registries.conf"), mirror);
    cpSync(join(import.meta.dir, "greeter"), join(home, "greeter"), { recursive: true });
    return new Reader(home, registry);
  }

  /** Runs a script in a shell that ends at the first command that fails. */
  async run(script: string, environment: Readonly<Record<string, string>> = {}): Promise<Ended> {
    const child = Bun.spawn(["sh", "-euc", `exec 2>&1\n${script}`], {
      cwd: this.#directory,
      env: { ...this.#environment(), ...environment },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "inherit",
      timeout: secondsPerBlock * 1000,
    });
    const output = await new Response(child.stdout).text();
    return { exitCode: await child.exited, output: output.replaceAll(this.#home, "/home/you") };
  }

  /** Runs each job of a pipeline separately, with its variables and the pipeline's secrets. */
  async runPipeline(yaml: string): Promise<Ended> {
    this.#service ??= await this.#serve();
    const secrets = { CI: "true", CONTREE_URL: this.#service.url, CONTREE_TOKEN: token };
    const ended: Ended = { exitCode: 0, output: "" };
    for (const { script, variables } of jobsOf(yaml)) {
      const { exitCode, output } = await this.run(script, { ...secrets, ...variables });
      ended.output += output;
      ended.exitCode ||= exitCode;
    }
    return ended;
  }

  async stop(): Promise<void> {
    await Promise.all([this.#registry.stop(), this.#service?.stop()]);
  }

  async #serve(): Promise<Service> {
    // The registry that stands for Docker Hub is on this machine.
    const command = ["bough", "-f", "json", "serve", "--allow-local-fetch", "--token", token];
    const child = Bun.spawn(command, {
      env: { ...this.#environment(), BOUGH_HOME: join(this.#home, "service") },
      stdout: "pipe",
      stderr: "ignore",
    });
    const { value } = await child.stdout.getReader().read();
    return {
      url: JSON.parse(new TextDecoder().decode(value)).url,
      async stop() {
        child.kill();
        await child.exited;
      },
    };
  }

  #environment(): Record<string, string> {
    return { PATH: `${dirname(compileBough())}:${process.env.PATH}`, HOME: this.#home };
  }
}

interface Job {
  script?: string[];
  steps?: { run?: string }[];
  variables?: Record<string, string>;
}

/** What GitLab reads as a setting of the whole file: a job of that name is an error (https://docs.gitlab.com/ci/jobs/#job-names). */
const gitlabSettings = ["image", "services", "stages", "before_script", "after_script", "variables", "cache"];

/** The jobs of a pipeline: GitLab's entries with a list `script`, or GitHub's below `jobs`, with a `run` in each step. */
function jobsOf(yaml: string): { script: string; variables: Record<string, string> }[] {
  const document = Bun.YAML.parse(yaml) as { jobs?: Record<string, Job> } & Record<string, Job>;
  for (const name of gitlabSettings) {
    if (document[name]?.script !== undefined) throw new Error(`GitLab takes no job of the name ${name}`);
  }
  const found = Object.values(document.jobs ?? document).flatMap(({ script, steps, variables = {} }) => {
    const lines = script ?? steps?.flatMap(({ run }) => run ?? []);
    return lines === undefined ? [] : [{ script: lines.join("\n"), variables }];
  });
  if (found.length === 0) throw new Error("a pipeline without a job that has a script");
  return found;
}
