// Airflow's way in: its React app imports this module and takes the function that it leaves behind. The page itself is Preact's.
import { mount } from "./page.js";

globalThis.AirflowPlugin = function FerryPage() {
  const { React } = globalThis;
  const place = React.useRef(null);
  React.useEffect(() => mount(place.current), []);
  return React.createElement("div", { ref: place, style: { height: "100%", overflow: "auto" } });
};
