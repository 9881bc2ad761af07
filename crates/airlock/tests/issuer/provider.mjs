// A real OpenID Connect server for tests. Its only account is "ann"; who posts to /decide decides for her.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
const require = createRequire(process.argv[2] + "/package.json");
const { Provider } = await import(pathToFileURL(require.resolve("oidc-provider")).href);

const port = Number(process.argv[3]);
const issuer = `http://127.0.0.1:${port}`;
const seconds = Number(process.argv[4] ?? 3600);
const resource = process.argv[5];

const provider = new Provider(issuer, {
  clients: [
    { client_id: "machine", client_secret: "canary-ClientSecret/4Xk+Wd9", grant_types: ["client_credentials"], redirect_uris: [], response_types: [] },
    { client_id: "known", client_secret: "canary-KnownSecret/7Rt+Qe1", application_type: "native", grant_types: ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"], redirect_uris: ["http://127.0.0.1/api/oauth/callback"] },
  ],
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    deviceFlow: { enabled: true },
    clientCredentials: { enabled: true },
    revocation: { enabled: true },
    introspection: { enabled: true },
    clientIdMetadataDocument: { enabled: true, ack: "draft-02" },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => resource,
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({ scope: "read write offline_access", audience: resource, accessTokenFormat: "opaque", accessTokenTTL: seconds }),
    },
  },
  scopes: ["openid", "offline_access", "read", "write"],
  ttl: { AccessToken: seconds, ClientCredentials: seconds, RefreshToken: 3600, Grant: 3600, Session: 3600, Interaction: 600, DeviceCode: 600 },
  issueRefreshToken: () => true,
  rotateRefreshToken: true,
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  cookies: { keys: ["test"] },
  // Names that only tests know lead to this machine.
  fetch: (url, options) => {
    const known = Object.entries(places).find(([name]) => String(url).startsWith(name));
    if (!known) return Promise.reject(new Error("nobody is there"));
    const { dispatcher, ...rest } = options ?? {};
    return globalThis.fetch(String(url).replace(known[0], known[1]), rest);
  },
});
provider.on("server_error", (_, error) => console.error(error));

// Agrees, or not, without a page: the test is the person.
let refuses = false;
let troubled = false;
const introduced = [];
provider.use(async (ctx, next) => {
  if (ctx.path === "/count") {
    ctx.body = { refreshes };
    return;
  }
  if (ctx.path === "/heard") {
    ctx.body = { heard: paths.has(ctx.query.path) };
    return;
  }
  paths.add(ctx.url);
  if (ctx.path === "/finds") {
    places[ctx.query.name] = ctx.query.at;
    ctx.body = {};
    return;
  }
  if (ctx.path === "/secrets") {
    ctx.body = [...secrets];
    return;
  }
  if (ctx.path === "/refuse") {
    refuses = ctx.query.on === "1";
    ctx.body = {};
    return;
  }
  if (ctx.path === "/forget-clients") {
    for (const id of introduced) await provider.Client.adapter.destroy(id);
    ctx.body = {};
    return;
  }
  if (ctx.path === "/reg" && ctx.method === "POST") {
    await next();
    if (ctx.body?.client_id) introduced.push(ctx.body.client_id);
    return;
  }
  if (ctx.path === "/trouble") {
    troubled = ctx.query.on === "1";
    ctx.body = {};
    return;
  }
  if (troubled && ctx.path === "/token") {
    ctx.status = 503;
    ctx.body = { error: "temporarily_unavailable" };
    return;
  }
  if (ctx.path === "/revoke-all") {
    for (const id of grants) await (await provider.Grant.find(id))?.destroy();
    for (const token of tokens) await token.destroy().catch(() => {});
    ctx.body = {};
    return;
  }
  if (ctx.path === "/valid") {
    const token = (await provider.AccessToken.find(ctx.query.token)) ?? (await provider.ClientCredentials.find(ctx.query.token));
    ctx.body = { valid: Boolean(token) && !token.isExpired, scopes: token?.scope ?? "" };
    return;
  }
  if (ctx.path.startsWith("/interaction/")) {
    const details = await provider.interactionDetails(ctx.req, ctx.res);
    const { prompt, params } = details;
    if (refuses) {
      return provider.interactionFinished(ctx.req, ctx.res, { error: "access_denied" }, { mergeWithLastSubmission: false });
    }
    if (prompt.name === "login") {
      return provider.interactionFinished(ctx.req, ctx.res, { login: { accountId: "ann" } }, { mergeWithLastSubmission: false });
    }
    const grant = new provider.Grant({ accountId: "ann", clientId: params.client_id });
    // What was asked for, and nothing else.
    const asked = (params.scope ?? "").split(" ");
    const granted = ["read", "write", "offline_access"].filter((scope) => asked.includes(scope)).join(" ");
    grant.addOIDCScope(`openid ${granted}`);
    if (resource && granted) grant.addResourceScope(resource, granted);
    const id = await grant.save();
    grants.push(id);
    return provider.interactionFinished(ctx.req, ctx.res, { consent: { grantId: id } }, { mergeWithLastSubmission: true });
  }
  if (ctx.path === "/token" && ctx.method === "POST") {
    await next();
    if (ctx.status === 200) {
      if (ctx.oidc?.params?.grant_type === "refresh_token") refreshes += 1;
      for (const name of ["access_token", "refresh_token", "id_token"]) {
        if (ctx.body?.[name]) secrets.add(ctx.body[name]);
      }
      for (const name of ["code", "code_verifier", "device_code"]) {
        if (ctx.oidc?.params?.[name]) secrets.add(ctx.oidc.params[name]);
      }
    }
    return;
  }
  await next();
});
let refreshes = 0;
const paths = new Set();
const places = {};
const grants = [];
const tokens = [];
const secrets = new Set();
provider.on("refresh_token.saved", (token) => tokens.push(token));
provider.on("access_token.saved", (token) => tokens.push(token));

provider.listen(port, "127.0.0.1", () => console.log("listening"));
